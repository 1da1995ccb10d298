"""Networks shared by generators; one architecture a file."""
