"""One run on the page: how it is doing, what can be done about it, and its designs as ranked cards."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app import explanation, jobs
from app.jobs import Status
from app.terminal import duration
from app.ui import ranking, text
from app.ui.ranking import Entry
from data.errors import InputError
from data.store import LOG, Run
from data.store.queue import CANCELLED, DONE, FAILED, LOST, PAUSED, QUEUED, RUNNING

LOOK_EVERY = {QUEUED: 1.0, RUNNING: 1.0, DONE: None}
"""Seconds between two looks at a run, by its state; another tab may resume one that has ended early."""
SELDOM = 5.0
COLOURS = {"queued": "gray", "running": "blue", "done": "green", "failed": "red", "lost": "red"} | dict.fromkeys(
    ("cancelled", "paused", "partial"), "orange"
)
REPORT = "report.html"
TABLES = (REPORT, "scores.csv", "violations.jsonl", "spec.yaml", "provenance.json")


def show(run: Run, weights: Mapping[str, float] | None = None) -> None:
    """A run, looked at again while it goes on; ranked by these weights, or by sliders of its own."""
    try:
        state = jobs.status(run).state
    except InputError as error:
        st.error(text.plain(error))
        return
    st.fragment(_live, run_every=LOOK_EVERY.get(state, SELDOM))(run, state, weights)


def _live(run: Run, before: str, weights: Mapping[str, float] | None) -> None:
    try:
        status, spec, rows = jobs.status(run), run.spec, run.rows()
        if status.state != before:  # the page around this has to look less, or more, often
            st.rerun()
        _head(run, status, spec)
        _ending(run, status)
        if rows:
            made_with = ranking.rewards_in(spec)
            found = ranking.entries(rows, _sliders(run, made_with) if weights is None else _those(made_with, weights))
            _designs(run, found, list(made_with))
        _explanation(run)
    except InputError as error:
        st.error(text.plain(error))


def _head(run: Run, status: Status, spec: Mapping[str, Any]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(text.plain(title(spec)), anchor=False, width="content")
        st.badge(status.state, color=COLOURS[status.state])  # type: ignore[arg-type]
    st.caption(text.plain(f"{details(spec)} · {run.path.name}"))
    if status.active:
        st.progress(status.share, text.plain(pace(status)))
        st.button(
            "Cancel", key=f"cancel/{run.path.name}", icon=":material/stop_circle:", on_click=jobs.cancel, args=(run,)
        )


def _ending(run: Run, status: Status) -> None:
    """What is to be said, and done, about a run that did not reach its end."""
    kept, begun = f"{status.kept} of {status.n} designs are kept", _has_begun(run, status)
    if status.state == FAILED:
        st.error(text.plain(f"{status.message} ({kept})"))
        log = run.path / LOG
        if log.is_file():
            with st.expander("What the worker said"):
                st.code(log.read_text(errors="replace")[-4000:], language=None)
        if not begun:
            st.caption("Nothing was made. Change what is wrong in the form, then *Generate*.")
    elif status.state == LOST:
        st.warning(text.plain(f"Lost: the process that made it is gone without a word; {kept}."))
    elif status.state == CANCELLED:
        st.info(text.plain(f"Cancelled; {kept}."))
    elif status.state == PAUSED:
        st.info(text.plain(f"Paused; {kept}."))
    if not status.active and status.state != DONE and begun:
        st.button("Resume", key=f"resume/{run.path.name}", icon=":material/resume:", on_click=_resume, args=(run,))


def _has_begun(run: Run, status: Status) -> bool:
    """Whether there is anything to go on with: a run that failed before its first step would only fail again."""
    return status.state != FAILED or status.kept > 0 or any(event["event"] == "started" for event in run.events())


def _resume(run: Run) -> None:
    try:
        jobs.start(run)
    except InputError as error:
        st.error(text.plain(error))


def title(spec: Mapping[str, Any]) -> str:
    """What a run makes, in words."""
    return f"{spec.get('n')} {name_of(spec, 'domain')} designs by {name_of(spec, 'generator')}"


def details(spec: Mapping[str, Any]) -> str:
    """How a run makes it, in words."""
    return f"{spec.get('steps')} steps · guidance {name_of(spec, 'guidance')} · seed {spec.get('seed')}"


def name_of(spec: Mapping[str, Any], kind: str) -> str:
    """The name of a plug-in in a spec; `?` in one that names none."""
    entry = spec.get(kind)
    return str(entry.get("name", "?")) if isinstance(entry, dict) else "?"


def pace(status: Status) -> str:
    """How far a run is, and when it will be done."""
    if status.state == QUEUED:
        return "Waiting for its turn"
    if status.share == 0:
        return "Loading the model"
    made = f"{status.kept} of {status.n} designs"
    if not status.left:
        return made
    rate = status.n * (1 - status.share) / status.left
    speed = f"{rate:.2g} a second" if rate >= 1 else f"{1 / rate:.2g} s each"
    return f"{made} · {speed} · about {duration(status.left)} left"


def _those(made_with: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """The weights of now for the rewards of a run; one that is switched off counts nothing."""
    return {name: weights.get(name, 0.0) for name in made_with}


def _sliders(run: Run, made_with: Mapping[str, float]) -> dict[str, float]:
    if not made_with:
        return {}
    st.caption("Moving a weight ranks these designs anew; it makes none.")
    weights = {}
    columns = st.columns(max(3, min(4, len(made_with))))
    for k, (name, weight) in enumerate(made_with.items()):
        most = max(3.0, abs(weight))
        with columns[k % len(columns)]:
            key = f"rank/{run.path.name}/{name}"
            weights[name] = st.slider(f"Weight of {name}", -most, most, weight, 0.1, key=key)
    return weights


def _designs(run: Run, found: Sequence[Entry], rewards: Sequence[str]) -> None:
    name = run.path.name
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.selectbox("Sort by", ["total", *rewards, "number"], key=f"sort/{name}", width=200)
        clean = st.toggle("Only without violations", key=f"clean/{name}")
        st.download_button(
            "All as zip", partial(zipped, run), f"{name}.zip", icon=":material/folder_zip:", on_click="ignore"
        )
        report = run.path / REPORT
        if report.is_file():
            st.download_button(
                "Report",
                report.read_bytes,
                REPORT,
                icon=":material/article:",
                on_click="ignore",
                help="One page with every picture and score; its links to the designs work in the unpacked zip",
            )
    shown = ranking.ordered(found, by, clean)
    pages = max(1, math.ceil(len(shown) / ranking.PER_PAGE))
    page = st.pagination(pages, key=f"page/{name}") if pages > 1 else 1
    if not shown:
        st.caption("No design is without violations.")
    _cards(run, shown[(page - 1) * ranking.PER_PAGE : page * ranking.PER_PAGE])


def _cards(run: Run, shown: Sequence[Entry]) -> None:
    pictures = [_picture(run, entry.number) for entry in shown]
    per_row = min(map(text.per_row, pictures), default=4)
    violations, formats = run.violations(), run.formats()
    for first in range(0, len(shown), per_row):
        row = zip(st.columns(per_row), shown[first : first + per_row], pictures[first : first + per_row], strict=False)
        for column, entry, picture in row:
            with column, st.container(border=True, height="stretch"):
                _card(run, entry, picture, violations.get(entry.number, []), formats)


def _explanation(run: Run) -> None:
    """What the report says that carries the score, if it does."""
    report = run.path / REPORT
    pictures = explanation.pictures(report.read_text(errors="replace")) if report.is_file() else {}
    if pictures:
        st.subheader(explanation.TITLE, anchor=False)
        st.caption(explanation.MEANING)
    for name, picture in pictures.items():
        st.markdown(f"**{text.plain(name)}**")
        st.html(text.image(picture, name, "max-width:100%"))


def _picture(run: Run, number: int) -> bytes:
    path = run.thumbnail_path(number)
    return path.read_bytes() if path.is_file() else b""


def _card(run: Run, entry: Entry, picture: bytes, violations: Sequence[str], formats: Sequence[str]) -> None:
    if picture:
        st.html(text.image(picture, f"design {entry.number}"))
    st.markdown(f"**{entry.number:06d}** · total **{entry.total:.4g}**")
    st.caption(" · ".join(_score(entry, name) for name in entry.rewards))
    if entry.violations:
        _violations(violations or [f"{entry.violations} violations"])
    with st.container(horizontal=True, gap="small"):
        for suffix in formats:
            path = run.design_path(entry.number, suffix)
            key = f"get/{run.path.name}/{path.name}"
            st.download_button(
                suffix[1:],
                path.read_bytes,
                path.name,
                key=key,
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
            )


def _violations(words: Sequence[str]) -> None:
    """The first one in sight, all of them a click away: a design may have a hundred."""
    st.markdown(f":small[:red[{text.plain(words[0])}]]")
    if len(words) > 1:
        with st.popover(f"All {len(words)} violations", type="tertiary"):
            st.markdown("\n".join(f"- {text.plain(word)}" for word in words))


def _score(entry: Entry, reward: str) -> str:
    """A reward of a design, with what it measured in brackets."""
    measured = [
        f"{key.partition('.')[2].replace('_', ' ')} {value:.4g}"
        for key, value in entry.parts.items()
        if key.startswith(f"{reward}.")
    ]
    brackets = f" ({text.plain(', '.join(measured))})" if measured else ""
    return f"{text.plain(reward)} **{entry.rewards[reward]:.4g}**{brackets}"


def zipped(run: Run) -> bytes:
    """A run as a zip: its designs in all formats, report, scores, violations, spec and provenance."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in TABLES:
            if (run.path / name).is_file():
                archive.write(run.path / name, f"{run.path.name}/{name}")
        for number in sorted(run.finished()):
            for suffix in run.formats():
                path = run.design_path(number, suffix)
                archive.write(path, f"{run.path.name}/designs/{path.name}")
    return held.getvalue()
