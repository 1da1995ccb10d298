"""The page of past runs: all of them as a list, or the one that `?run=NAME` names."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime

import streamlit as st

from app.ui import design_page, jobs, run_view, text
from data.errors import InputError
from data.store import Run

PER_PAGE = 20
WIDTHS = (3, 2, 3, 2, 2, 2, 2)


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
    for column, head in zip(
        st.columns(WIDTHS), ("", "State", "Time", "Designs", "Domain", "Backend", "Seed"), strict=True
    ):
        column.caption(head)
    for run in runs[(page - 1) * PER_PAGE : page * PER_PAGE]:
        _row(run)


def _row(run: Run) -> None:
    name, state, *cells = st.columns(WIDTHS, vertical_alignment="center")
    label, key = text.plain(run.path.name), f"open/{run.path.name}"
    name.button(label, key=key, type="tertiary", on_click=_turn_to, args=(run,))
    try:
        status, spec = jobs.status(run), run.spec
    except InputError as error:
        state.badge("damaged", color="red")
        cells[0].caption(text.plain(error))
        return
    state.badge(status.state, color=run_view.COLOURS[status.state])  # type: ignore[arg-type]
    written = datetime.fromtimestamp((run.path / "spec.yaml").stat().st_mtime)
    words = (
        f"{written:%Y-%m-%d %H:%M}",
        f"{status.kept} of {status.n}",
        run_view.name_of(spec, "domain"),
        run_view.name_of(spec, "generator"),
        spec.get("seed"),
    )
    for column, word in zip(cells, words, strict=True):
        column.markdown(text.plain(word))


def _turn_to(run: Run) -> None:
    st.query_params["run"] = run.path.name
