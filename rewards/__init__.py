"""Scores of finished designs, some of them with a gradient on half-finished ones."""
