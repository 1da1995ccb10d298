"""Geometries that generators give to the factors of a space; one file each."""
