"""Serve the dashboard: `python -m dashboard [--port N] [--address NAME] [--allow-triage]`.

What pages import and what every visitor asks for first is there before the server answers, so that
the first visitor does not wait for it. Streamlit's own settings come from `.streamlit/config.toml`
beside this module and from the same file in the folder where the server is started.
"""

import argparse
import importlib
import logging
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import uvicorn
from altair.utils import schemapi
from streamlit.starlette import App

from dashboard.session import ALLOW_TRIAGE

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
_BACKLOG = 128


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped; the exit status is 2 where the address cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m dashboard", description=__doc__)
    parser.add_argument("--port", type=_port, default=8501, help="port to listen on")
    parser.add_argument("--address", default="localhost", help="name or address to listen on")
    parser.add_argument(ALLOW_TRIAGE, action="store_true", help="let visitors write triage")
    chosen = parser.parse_args(arguments)
    try:
        listening = listen(chosen.address, chosen.port)
    except OSError as error:
        print(
            f"cannot serve at {chosen.address}:{chosen.port}: {error}; stop what listens there, "
            "or choose another --port or --address",
            file=sys.stderr,
        )
        return 2
    # Made first: it finds the settings, which what is prepared depends on.
    app = App(APP)
    prepare()
    settings = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=listening)
    return 0


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 1 << 16:
        raise argparse.ArgumentTypeError(f"{port} is no port; expected 1 to 65535")
    return port


def listen(address: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at every address of a name. Raises OSError.

    Made for TCP by name, since only then asyncio sends small answers at once. Streamlit's own are
    not: each of a page's hundred scripts then waits up to 40 ms for the browser to acknowledge its
    headers, and so does every change of a page.
    """
    places = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    with ExitStack() as made:
        found = [made.enter_context(_listening(place)) for place in places]
        made.pop_all()
    return found


def _listening(place: tuple[int, int, int, str, Any]) -> socket.socket:
    family, kind, protocol, _, at = place
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(at)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def prepare() -> None:
    """Import what pages use and compute what every visitor asks for first."""
    # Streamlit would say of each cached function that its server does not run yet.
    logging.getLogger("streamlit.runtime.caching.cache_data_api").setLevel(logging.ERROR)
    for name in _USED_BY_PAGES:
        importlib.import_module(name)
    from dashboard import warm

    # The charts are checked against their schema in the tests; at each drawing it costs too much.
    schemapi.disable_debug_mode()
    warm.start(_WAIT_S)


if __name__ == "__main__":
    sys.exit(main())
