"""The entry script: `streamlit run dashboard/app.py`, which `bandwatch dashboard` does."""

from pathlib import Path

import streamlit as st

from dashboard.pages import PAGES

ICON = Path(__file__).parent / "icon.svg"

st.set_page_config(page_title="Bandwatch", page_icon=str(ICON), layout="wide")
st.logo(str(ICON), size="medium")
st.navigation(
    [
        st.Page(page.file, title=page.title, url_path=page.path, default=not page.path)
        for page in PAGES
    ],
    position="top",
).run()
