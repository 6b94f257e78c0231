"""Serve the dashboard: `python -m dashboard [Streamlit's options] [-- --allow-triage]`.

What pages import is imported before the server answers, so that the first visitor does not wait
for it.
"""

import importlib
import sys
from pathlib import Path

from streamlit.web.cli import main

APP = Path(__file__).parent / "app.py"
_USED_BY_PAGES = (
    "dashboard.changes",
    "dashboard.charts.distribution",
    "dashboard.charts.effects",
    "dashboard.charts.ladder",
    "dashboard.charts.ratio",
    "dashboard.charts.roofline",
    "dashboard.details",
    "dashboard.findings",
    "dashboard.judging",
    "dashboard.triage",
    "tracker.exporters.flat",
)

if __name__ == "__main__":
    for name in _USED_BY_PAGES:
        importlib.import_module(name)
    sys.exit(main(["run", str(APP), *sys.argv[1:]]))
