"""What Streamlit runs, for every visit and every click: two pages."""

from __future__ import annotations

import streamlit as st

from app.ui import design_page, runs_page

# In a green that shows on light and on dark; Streamlit would print a docstring on the page.
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 118 24" font-family="Helvetica, Arial, sans-serif">'
    '<path d="M2 20C8 20 8 5 20 5" fill="none" stroke="#3f927c" stroke-width="3" stroke-linecap="round"/>'
    '<circle cx="20" cy="5" r="3.5" fill="#3f927c"/>'
    '<text x="30" y="18" font-size="17" font-weight="bold" fill="#3f927c">Foreshape</text></svg>'
)


def main() -> None:
    """The page that the address names."""
    st.set_page_config("Foreshape", ":material/draw:", layout="wide", initial_sidebar_state=360)
    st.logo(LOGO, size="large")
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
