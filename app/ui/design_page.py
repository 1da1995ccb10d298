"""The page on which designs are made: the form at the side, the run in the middle."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import jobs
from app.ui import catalogue, form, run_view, text
from app.ui.catalogue import Catalogue
from data.errors import InputError
from data.store import Run


@st.cache_resource(show_spinner="Loading domains, backends and rewards …")
def what_there_is() -> Catalogue:
    """The catalogue, read once for all sessions."""
    return catalogue.read()


def show() -> None:
    """The page. `?run=NAME` is the run that is shown, so that a reload comes back to it."""
    try:
        found = what_there_is()
    except InputError as error:
        st.error(text.plain(error))
        return
    run = jobs.named(st.query_params.get("run", ""))
    if run is not None and not form.is_filled():
        fill(run, found)
    with st.sidebar:
        top = st.container()  # in sight, however long the form is
        spec = form.show(found)
        if top.button("Generate", type="primary", icon=":material/play_arrow:", width="stretch", disabled=spec is None):
            run = _generate(spec or {}) or run
    if run is None:
        _welcome()
    else:
        run_view.show(run, _weights(run, spec))


def fill(run: Run, found: Catalogue) -> None:
    """Fill the form with what a run was asked for, if that can be read."""
    try:
        form.load(run.spec, found)
    except InputError as error:
        st.error(text.plain(error))


def _generate(spec: dict[str, Any]) -> Run | None:
    try:
        run = jobs.submit(spec)
    except InputError as error:
        st.error(text.plain(error))
        return None
    st.query_params["run"] = run.path.name
    return run


def _weights(run: Run, spec: dict[str, Any] | None) -> dict[str, float] | None:
    """The weights in the form rank a run of the same domain; one of another has sliders of its own."""
    try:
        same = spec is not None and run_view.name_of(run.spec, "domain") == spec["domain"]["name"]
    except InputError:
        return None
    return {name: entry["weight"] for name, entry in spec["rewards"].items()} if spec and same else None


def _welcome() -> None:
    st.subheader("Nothing made yet", anchor=False)
    st.markdown(
        "Choose at the side (» where it is folded away) what to design, by which backend, and what it shall be good "
        "at; then *Generate*. Designs appear here as they are finished. "
        "The weights rank them at once; past runs are under *Runs*."
    )
