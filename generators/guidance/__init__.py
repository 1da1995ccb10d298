"""Ways to steer a flight towards a score; one file each, with a `build(**parameters)` function."""
