"""What the command line says and does about runs: what one command asks for, list them, act on one, export one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from app import jobs, png, worker
from app.composition import combinations, composed
from app.records import NOTES, SEARCHES, everywhere, lineage
from app.spec import RunSpec, SpecError, from_plain, placed, placed_as
from data.errors import InputError
from data.store import Run, put_all
from data.store.queue import Queue

SEVERAL = ("-m", "--multirun")


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
    for name, run in everywhere(standings.values()).items():
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


ACTIONS: dict[str, Callable[[Queue, Run], int]] = {
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "retry": _retry,
    "first": _first,
}
