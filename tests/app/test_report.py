"""The words of a report's cards."""

from __future__ import annotations

from app import report

ROW = {
    "design": "3",
    "total": "1.25",
    "motif": "0.5",
    "motif.best_log_odds": "10.06",
    "motif.position": "-39",
    "motif.valid": "1",
    "motif_b": "0.75",
    "<b>": "2",
    "violations": "4",
}


def test_each_score_has_its_parts_in_brackets_and_no_others() -> None:
    assert report.measured(ROW).split(" · ") == [
        "total <b>1.25</b>",
        "motif <b>0.5</b> (best log odds 10.06, position -39)",
        "motif_b <b>0.75</b>",
        "&lt;b&gt; <b>2</b>",
        "violations <b>4</b>",
    ]
