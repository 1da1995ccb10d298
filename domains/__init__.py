"""The kinds of design: what each is made of, which rules it obeys, and how it is read, written and measured."""
