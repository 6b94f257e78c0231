"""Serve the dashboard: `python -m dashboard [Streamlit's options] [-- --allow-triage]`.

What pages import and what every visitor asks for first is there before the server answers, so that
the first visitor does not wait for it.
"""

import importlib
import logging
import sys
from pathlib import Path

from altair.utils import schemapi
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
# A server that does not answer looks broken: after this time, warming goes on beside it.
_WAIT_S = 15.0

if __name__ == "__main__":
    # Streamlit would say of each cached function that its server does not run yet.
    logging.getLogger("streamlit.runtime.caching.cache_data_api").setLevel(logging.ERROR)
    for name in _USED_BY_PAGES:
        importlib.import_module(name)
    from dashboard import warm

    # The charts are checked against their schema in the tests; at each drawing it costs too much.
    schemapi.disable_debug_mode()
    warm.start(_WAIT_S)
    sys.exit(main(["run", str(APP), *sys.argv[1:]]))
