"""What a page shows, as plain values that a test can compare."""

import io
import json
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pyarrow as pa
from streamlit.testing.v1 import AppTest


def html(page: AppTest) -> str:
    """Return all HTML of a page, as sent to the browser, without our own script."""
    return "\n".join(
        element.proto.body
        for element in page.get("html")
        if not element.proto.unsafe_allow_javascript
    )


def scripts(page: AppTest) -> list[str]:
    """Return the HTML that may run scripts."""
    return [
        element.proto.body for element in page.get("html") if element.proto.unsafe_allow_javascript
    ]


def codes(page: AppTest) -> list[str]:
    """Return the texts to copy."""
    found = re.findall(r"<code data-copied[^>]*>(.*?)</code>", html(page), re.DOTALL)
    return [unescape(text) for text in found]


def table(page: AppTest, place: int = 0) -> pd.DataFrame:
    """Return a table of the page."""
    frame: pd.DataFrame = page.dataframe[place].value
    return frame


def chart(page: AppTest, place: int = 0) -> tuple[dict[str, Any], str, list[pd.DataFrame]]:
    """Return a chart's specification, its sentence, and its data."""
    proto = page.get("vega_lite_chart")[place].proto
    frames = [read(dataset.data.data) for dataset in proto.datasets]
    return json.loads(proto.spec), proto.alt, frames


def read(stream: bytes) -> pd.DataFrame:
    """Return a frame from an Arrow stream."""
    frame: pd.DataFrame = pa.ipc.open_stream(io.BytesIO(stream)).read_pandas()
    return frame


def links(page: AppTest) -> dict[str, str]:
    """Return the links to other pages: label to path and parameters."""
    return {
        link.proto.label: f"{link.proto.page}?{link.proto.query_string}"
        for link in page.get("page_link")
    }


def permanent(page: AppTest) -> str:
    """Return the permanent link of the page."""
    return next(text for text in codes(page) if text.startswith(("/", "http")) and "?" in text)


def parameters(link: str) -> dict[str, str | list[str]]:
    """Return the parameters of a link, as the address has them."""
    return {
        key: values[0] if len(values) == 1 else values
        for key, values in parse_qs(urlsplit(link).query).items()
    }
