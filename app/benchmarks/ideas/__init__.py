"""IDEAS beside seven baselines and two controls, on landscapes with a known best."""
