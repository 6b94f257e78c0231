"""A short list of facts as plain text: the details of a commit, a run or a result."""

from collections.abc import Sequence

import streamlit as st

from dashboard.palette import Palette
from dashboard.text import in_html, web_link

Fact = tuple[str, str]


def show(facts: Sequence[Fact], colours: Palette) -> None:
    """Draw names and values below each other; both are shown as plain text."""
    rows = "".join(
        f'<dt style="margin:0;color:{colours.muted}">{in_html(name)}</dt>'
        f'<dd style="margin:0;overflow-wrap:anywhere">{in_html(value, 400)}</dd>'
        for name, value in facts
    )
    st.html(
        '<dl style="display:grid;grid-template-columns:max-content 1fr;gap:.15rem .9rem;'
        f'margin:0;padding:0">{rows}</dl>'
    )


def line(parts: Sequence[str], colours: Palette) -> None:
    """Draw one muted line of plain texts, divided by dots."""
    told = " · ".join(in_html(part) for part in parts if part)
    st.html(f'<p style="color:{colours.muted};margin:0;overflow-wrap:anywhere">{told}</p>')


def heading(text: str) -> None:
    """Draw a heading of text from the store, as plain text."""
    st.html(f'<h2 style="font-size:1.25rem;margin:0;padding:.6rem 0 0">{in_html(text)}</h2>')


def counts(items: Sequence[tuple[str, str, str]]) -> None:
    """Draw numbers in a row: each a large text, the words after it, and their colour."""
    cells = "".join(
        f'<span style="color:{colour};white-space:nowrap">'
        f'<b style="font-size:1.5rem">{in_html(large)}</b> {in_html(words)}</span>'
        for large, words, colour in items
    )
    st.html(
        '<div style="display:flex;flex-wrap:wrap;gap:.2rem 1.6rem;align-items:baseline">'
        f"{cells}</div>"
    )


def web_button(label: str, address: str | None, *, key: str) -> None:
    """Draw a button to another site where the address is one; `label` is our own text."""
    link = web_link(address)
    if link is not None:
        st.link_button(label, link, type="tertiary", icon=":material/open_in_new:", key=key)
