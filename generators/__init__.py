"""Generative models over states; they know no domain."""
