"""A few designs in every domain with the shipped checkpoints, and one page that shows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app import cells, report, service
from app.composition import composed
from app.spec import RunSpec, from_plain
from data.errors import InputError
from data.store import Run

RUNS: Mapping[str, tuple[str, ...]] = {
    "dna": (
        "domain=dna", "generator=rmf", "guidance=lookahead", "rewards.gc_content.target=0.45",
        "rewards.motif.name=TATA-Box", "rewards.motif.start=-40", "rewards.motif.end=-15",
    ),
    "protein": ("domain=protein", "generator=rmf", "guidance=lookahead"),
    "svg": ("domain=svg", "generator=hybrid"),
    "layout": (
        "domain=layout", "generator=hybrid", "guidance=best_of_n", "rewards.density.weight=1",
        "rewards.density.target=0.4",
    ),
}  # fmt: skip
"""Folder of a run -> what is asked for."""
EACH, PAGE = 8, "report.html"


def make(folder: Path, progress: service.Progress) -> Path:
    """Make the runs, or what is missing of them, inside a folder, and print their scores; returns the page."""
    strange = sorted({entry.name for entry in folder.iterdir()} - {*RUNS, PAGE}) if folder.is_dir() else []
    if strange or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{folder} holds {strange[0] if strange else 'no folder'}; give one that is new or a demo's")
    shown = []
    for name, overrides in RUNS.items():
        plain = composed("generate", [*overrides, f"n={EACH}", "seed=1", f"out={folder / name}"])
        spec = from_plain(RunSpec, plain)
        path = service.generate(spec, progress)
        print(report.text(Run(path).rows()))
        shown.append((Run(path), cells.domain(spec.domain, spec.generator.name), spec))
    page = folder / PAGE
    page.write_text(report.album("Designs in every domain", shown, EACH))
    return page
