"""What is remembered of all runs together: the best designs, labels, presets, and what designs come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from app import jobs, presets
from app.spec import RunSpec, SpecError, from_plain
from app.worker import name_of
from data.errors import InputError
from data.store import Run
from data.store.database import Database
from data.store.index import best, children, describe, keep_presets, labelled, parents, refresh, reindex
from data.store.queue import Queue, Standing

MOST_BEST = 20
"""Designs that `runs best` names."""


def everywhere(standings: Iterable[Standing]) -> dict[str, Run]:
    """The runs of the home, and those of the queue that are elsewhere, by name."""
    queued = {one.name: Run(one.folder) for one in standings if (one.folder / "spec.yaml").is_file()}
    return {name_of(run): run for run in jobs.runs()} | queued


def found(search: str, names: Sequence[str]) -> str:
    """What a search over all runs finds; raises `InputError`."""
    if len(names) != 1:
        raise SpecError(
            f"runs {search} takes one name, not {len(names)}; give a reward after best, a label after labelled"
        )
    return SEARCHES[search](names[0])


def with_label(label: str) -> str:
    """The runs that have a label, a line each; raises `InputError` where there is none."""
    names = labelled(Database(), label)
    if not names:
        raise SpecError(f"no run has the label {label!r:.100}; `foreshape runs label RUN TEXT` gives one")
    return "\n".join(names)


def top(reward: str) -> str:
    """The designs that score highest by a reward, or by `total`, over all runs of the home and the queue, a line each.

    Raises `InputError` where no design has a score of this name.
    """
    database = Database()
    for name, run in everywhere(Queue(database).standings()).items():
        try:
            refresh(database, name, run)
        except InputError:  # damaged, which `runs list` tells
            continue
    found = best(database, reward, MOST_BEST)
    if not found:
        raise SpecError(f"no design has a score {reward!r:.100}; give total, or a reward of a run that has designs")
    return "\n".join(f"{value:.6g}  {run}  {design:06d}" for run, design, value in found)


def reindexed() -> str:
    """Make the index of all runs of the home and the queue anew, and forget runs whose folder is gone; what was done,
    a line a run.
    """
    database, lines = Database(), list[str]()
    keep_presets(database, presets.every())
    queue = Queue(database)
    for one in queue.standings():
        if not (one.folder / "spec.yaml").exists():
            queue.forget(one.name)
            lines.append(f"forgotten  {one.folder}")
    for name, run in everywhere(queue.standings()).items():
        try:
            lines.append(f"{reindex(database, name, run)} designs  {run.path}")
        except InputError as error:
            lines.append(f"left out  {run.path}: {error}")
    return "\n".join(lines) or "no runs"


def lineage(run: Run) -> str:
    """What the designs of a run come from, and which runs come from them, a line each."""
    database, name = Database(), name_of(run)
    for other, each in everywhere(Queue(database).standings()).items() | {(name, run)}:
        with suppress(InputError):  # damaged, which `runs list` tells
            refresh(database, other, each)
            describe(database, other, each)
    held = run.lineage
    lines = [f"{held['operator']}, held at {len(held['sites'])} sites of {held['file'] or 'the spec'}"] if held else []
    lines += [f"from  {other}  {design:06d}" for other, design in parents(database, name)]
    lines += [f"to    {other}  by {design:06d}" for other, design in children(database, name)]
    return "\n".join(lines) or "from no design, and no run from it"


def _label(run: Run, text: str) -> str:
    run.label(text)
    describe(Database(), name_of(run), run)
    return f"label {text} of {run.path}"


def _unlabel(run: Run, text: str) -> str:
    run.label(text, wanted=False)
    describe(Database(), name_of(run), run)
    return f"no label {text} of {run.path}"


def _preset(run: Run, name: str) -> str:
    presets.keep(name, from_plain(RunSpec, run.spec | {"out": None}).identity())
    keep_presets(Database(), presets.every())
    return f"preset={name} is {run.path}/spec.yaml"


SEARCHES: dict[str, Callable[[str], str]] = {"best": top, "labelled": with_label}
NOTES: dict[str, tuple[str, Callable[[Run, str], str]]] = {
    "label": ("a label", _label),
    "unlabel": ("a label", _unlabel),
    "preset": ("a new name", _preset),
}
"""What is done to a run by one word more: what that is, and what does it."""
