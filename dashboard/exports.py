"""Files to download: CSV with base units in the column names and full precision."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from dashboard.text import csv_cell

_UNSAFE = frozenset('<>:"/\\|?*\0 ')


def csv(frame: pd.DataFrame) -> bytes:
    """Return a frame as CSV in UTF-8 with one header line; no text in it is a formula."""
    safe = frame.copy()
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = [csv_cell(str(value)) for value in safe[column].to_list()]
    return safe.to_csv(index=False).encode()


def file_name(*parts: str, extension: str = "csv") -> str:
    """Return a file name of page, case, commits and date that every system takes."""
    name = "_".join("".join("-" if c in _UNSAFE else c for c in part) for part in parts if part)
    return f"bandwatch_{name[:160]}.{extension}"


def button(label: str, make: Callable[[], bytes], name: str, *, mime: str = "text/csv") -> None:
    """Draw a download button; nothing is made until it is clicked, and the page does not rerun."""
    st.download_button(
        label,
        make,
        file_name=name,
        mime=mime,
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )
