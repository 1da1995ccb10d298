"""Hydra presets; every option of a group is named after its plug-in."""
