"""Verdicts and runs as text, JSON, CSV, Markdown and GitHub annotations."""

import json
from importlib.resources import files
from typing import Any


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `--format json` writes."""
    text = files(__name__).joinpath("report-1.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
