"""The page of past runs: all of them as a list, or the one that `?run=NAME` names."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime

import streamlit as st

from app import jobs
from app.ui import design_page, run_view, text
from data.errors import InputError
from data.store import Run

PER_PAGE = 20
WIDTHS = (230, 90, 140, 80, 150, 180)
"""Pixels of name, state, time, designs, what by what, and seed; on a narrow page they go on in the next line."""


def show(to_design: Callable[[], None]) -> None:
    """The page; `to_design` turns to the other one."""
    name = st.query_params.get("run")
    run = jobs.named(name) if name else None
    if run is not None:
        _open(run, to_design)
    else:
        if name:
            st.error(text.plain(f"There is no run {name}; here are those that there are."))
        _list(jobs.runs())


def _open(run: Run, to_design: Callable[[], None]) -> None:
    with st.container(horizontal=True):
        st.button("All runs", icon=":material/arrow_back:", on_click=st.query_params.clear)
        if st.button("Use as new", icon=":material/edit:", help="Fill the form with what this run was asked for"):
            design_page.fill(run, design_page.what_there_is())
            to_design()
    run_view.show(run)


def _list(runs: list[Run]) -> None:
    st.subheader("Runs", anchor=False)
    if not runs:
        st.caption("None yet. Those that you make on the page *Design*, or by `foreshape generate`, are listed here.")
        return
    pages = math.ceil(len(runs) / PER_PAGE)
    page = st.pagination(pages, key="runs") if pages > 1 else 1
    for run in runs[(page - 1) * PER_PAGE : page * PER_PAGE]:
        _row(run)


def _row(run: Run) -> None:
    label, key = text.plain(run.path.name), f"open/{run.path.name}"
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width=WIDTHS[0]):
            st.button(label, key=key, type="tertiary", on_click=_turn_to, args=(run,))
        try:
            words = _words(run)
        except InputError as error:
            st.badge("damaged", color="red")
            st.caption(text.plain(error))
            return
        for width, word in zip(WIDTHS[1:], words, strict=True):
            st.markdown(word, width=width)


def _words(run: Run) -> tuple[str, ...]:
    """State, time, designs, what by what, and seed, as Markdown."""
    status, spec = jobs.status(run), run.spec
    written = datetime.fromtimestamp((run.path / "spec.yaml").stat().st_mtime)
    domain, generator = (run_view.name_of(spec, kind) for kind in ("domain", "generator"))
    plain = (
        f"{written:%Y-%m-%d %H:%M}", f"{status.kept} of {status.n}", f"{domain} by {generator}",
        f"seed {spec.get('seed')}",
    )  # fmt: skip
    return (f":{run_view.COLOURS[status.state]}-badge[{status.state}]", *map(text.plain, plain))


def _turn_to(run: Run) -> None:
    st.query_params["run"] = run.path.name
