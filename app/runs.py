"""What the command line says and does about runs: list them, act on one, make the index anew, find the best designs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from app import jobs, png, presets, worker
from app.composition import combinations, composed
from app.spec import RunSpec, SpecError, from_plain, placed, placed_as
from data.errors import InputError
from data.store import Run, put_all
from data.store.database import Database
from data.store.index import best, children, describe, keep_presets, labelled, parents, refresh, reindex
from data.store.queue import Queue, Standing

SEVERAL = ("-m", "--multirun")
MOST_BEST = 20
"""Designs that `runs best` names."""


def asked(overrides: Sequence[str]) -> list[RunSpec]:
    """The runs of one command: one, or with `-m` one of each combination of the values that vary.

    Raises `InputError` where one of them is wrong.
    """
    words = [word for word in overrides if word not in SEVERAL]
    if len(words) == len(overrides):
        return [from_plain(RunSpec, composed("generate", words))]
    found = [placed_as(name, from_plain(RunSpec, plain)) for name, plain in combinations("generate", words)]
    parent = Path(found[0].out or "").parent
    if len(found) > 1 and (parent / "spec.yaml").exists():
        raise SpecError(f"{parent} is a run; give out=DIR that holds several")
    return found


def submitted(specs: Sequence[RunSpec]) -> list[Path]:
    """Queue runs for any worker, or what they lack; returns their folders. Raises `InputError`."""
    from app import service  # loads PyTorch

    here = [replace(spec, out=str(placed(spec))) for spec in specs]
    for spec in here:
        service.prepare(spec)  # which tells now what else a worker would be told
    queue = Queue()
    for spec in here:
        run = worker.enlist(spec, placed(spec), queue)
        run.withdraw_cancel()
        run.event("submitted")
    return [placed(spec) for spec in here]


def exported(run: Run, to: Path, suffix: str | None) -> int:
    """Put a run's designs into a folder, in one format, in all, or as pictures (`.png`); returns how many files.

    Raises `InputError`.
    """
    if suffix != png.SUFFIX or suffix in run.formats():
        return run.export(to, suffix)
    from app import provenance  # loads PyTorch

    png.renderer()
    spec, origin = from_plain(RunSpec, run.spec | {"out": None}), run.provenance
    pictures = {}
    for index in sorted(run.finished()):
        path, notes = run.thumbnail_path(index), provenance.of_design(spec, index, origin)
        pictures[f"{path.stem}{suffix}"] = partial(_picture, path, notes)
    return put_all(to, pictures)


def _picture(path: Path, notes: Mapping[str, str]) -> bytes:
    return png.drawn(path.read_bytes(), notes)


def listed() -> dict[str, Any]:
    """Every run of the home and of the queue: state, designs, and what its workers say."""
    standings = {one.name: one for one in Queue().standings()}
    found: list[dict[str, Any]] = []
    for name, run in _everywhere(standings.values()).items():
        try:
            status, labels = jobs.status(run), run.labels()
        except InputError as error:
            found.append({"run": name, "state": "damaged", "message": str(error)})
            continue
        workers = standings[name].progress if name in standings else {}
        entry = {"run": name, "state": status.state, "designs": status.kept, "n": status.n, "left": status.left}
        found.append(entry | {"labels": labels, "message": status.message, "workers": dict(workers)})
    return {"runs": found}


def as_text(found: Mapping[str, Any]) -> str:
    """The list for people: a line a run, and one for each of its workers."""
    lines = []
    for entry in found["runs"]:
        labels = "".join(f"  [{label}]" for label in entry.get("labels", ()))
        lines.append(f"{entry['state']:<9} {entry.get('designs', '?')}/{entry.get('n', '?')}  {entry['run']}{labels}")
        lines += [f"          {entry['message']}"] * bool(entry.get("message"))
        for name, said in entry.get("workers", {}).items():
            left = f", {said['left']} s left" if said.get("left") is not None else ""
            lines.append(
                f"          {name}: {said.get('what', 'loading')} {said.get('step')}/{said.get('steps')}{left}"
            )
    return "\n".join(lines) or "no runs; `foreshape generate` or `foreshape submit` makes one"


def act(action: str, names: Sequence[str]) -> str:
    """Do one thing to one run, with a word more where it takes one; returns what was done. Raises `InputError`."""
    if action not in {**ACTIONS, **NOTES, "lineage": None}:
        words = ", ".join(["list", *SEARCHES, *ACTIONS, *NOTES, "lineage"])
        raise SpecError(f"no action {action!r:.100} of runs; there are {words}")
    wanted = 2 if action in NOTES else 1
    if len(names) != wanted:
        what = f"a run and {NOTES[action][0]}" if action in NOTES else "one name, of a run"
        raise SpecError(f"runs {action} takes {what}, not {len(names)} words; quote one that has spaces")
    run = Run.find(names[0])
    if action in NOTES:
        return NOTES[action][1](run, names[1])
    if action == "lineage":
        return lineage(run)
    shards = ACTIONS[action](Queue(), run)
    return f"{action}: {shards} shards of {run.path}"


def lineage(run: Run) -> str:
    """What the designs of a run come from, and which runs come from them, a line each."""
    database, name = Database(), worker.name_of(run)
    for other, each in _everywhere(Queue(database).standings()).items() | {(name, run)}:
        with suppress(InputError):  # damaged, which `runs list` tells
            refresh(database, other, each)
            describe(database, other, each)
    held = run.provenance.get("lineage") or {}
    lines = [f"{held['operator']}, held at {len(held['sites'])} sites of {held['file'] or 'the spec'}"] if held else []
    lines += [f"from  {other}  {design:06d}" for other, design in parents(database, name)]
    lines += [f"to    {other}  by {design:06d}" for other, design in children(database, name)]
    return "\n".join(lines) or "from no design, and no run from it"


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
    for name, run in _everywhere(Queue(database).standings()).items():
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
    for name, run in _everywhere(queue.standings()).items():
        try:
            lines.append(f"{reindex(database, name, run)} designs  {run.path}")
        except InputError as error:
            lines.append(f"left out  {run.path}: {error}")
    return "\n".join(lines) or "no runs"


def _everywhere(standings: Iterable[Standing]) -> dict[str, Run]:
    """The runs of the home, and those of the queue that are elsewhere, by name."""
    queued = {one.name: Run(one.folder) for one in standings if (one.folder / "spec.yaml").is_file()}
    return {worker.name_of(run): run for run in jobs.runs()} | queued


def _cancel(queue: Queue, run: Run) -> int:
    if run.in_use():
        run.cancel()
    count = queue.cancel(worker.name_of(run))
    if count:
        run.event("cancelled")
    return count


def _pause(queue: Queue, run: Run) -> int:
    count = queue.pause(worker.name_of(run))
    if count:
        run.event("paused")
    return count


def _resume(queue: Queue, run: Run) -> int:
    count = queue.resume(worker.name_of(run))
    if count:
        run.event("submitted")
    return count


def _retry(queue: Queue, run: Run) -> int:
    run.withdraw_cancel()
    worker.enlist(from_plain(RunSpec, run.spec), run.path, queue)
    count = queue.retry(worker.name_of(run))
    run.event("submitted")
    standing = queue.standing(worker.name_of(run))
    return max(count, sum(standing.counts.values()) - standing.counts.get("done", 0) if standing else 0)


def _first(queue: Queue, run: Run) -> int:
    return queue.first(worker.name_of(run))


def _label(run: Run, text: str) -> str:
    run.label(text)
    describe(Database(), worker.name_of(run), run)
    return f"label {text} of {run.path}"


def _unlabel(run: Run, text: str) -> str:
    run.label(text, wanted=False)
    describe(Database(), worker.name_of(run), run)
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
ACTIONS: dict[str, Callable[[Queue, Run], int]] = {
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "retry": _retry,
    "first": _first,
}
