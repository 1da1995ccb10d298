"""What Streamlit runs, for every visit and every click: two pages."""

from __future__ import annotations

import streamlit as st

from app.ui import design_page, runs_page


def main() -> None:
    """The page that the address names."""
    st.set_page_config("Foreshape", ":material/draw:", layout="wide", initial_sidebar_state=360)
    design = st.Page(design_page.show, title="Design", icon=":material/draw:", url_path="design", default=True)
    runs = st.Page(
        lambda: runs_page.show(lambda: st.switch_page(design)),
        title="Runs",
        icon=":material/history:",
        url_path="runs",
    )
    st.navigation([design, runs], position="top").run()


if __name__ == "__main__":
    main()
