"""The bench of the shipped flow map of backbones."""

from app.benchmarks import backbones


def test_rigid_motions_and_padding_change_nothing_else() -> None:
    found = backbones.run(quick=True)
    assert all(goal["met"] for goal in found["goals"].values())
    (row,) = found["rows"]
    assert row["n"] == backbones.QUICK_N
    assert row["seconds"] > 0
    assert 0 < row["metrics"]["equivariance"] < 1e-4
