"""What a state is, and where corpora, checkpoints and runs are kept."""
