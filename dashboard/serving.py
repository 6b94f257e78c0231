"""The dashboard's server and a browser on it, for tests, pictures and the speed script."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shutil import which

from dashboard.session import STORE_VARIABLE

CHROMIUM_VARIABLE = "BANDWATCH_CHROMIUM"
# No network but the server's, no questions, no state kept.
CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """Return the browser's executable: from BANDWATCH_CHROMIUM, else from the path."""
    return os.environ.get(CHROMIUM_VARIABLE) or which("chromium") or which("chromium-browser")


@contextmanager
def server(store: str, *arguments: str, timeout_s: float = 60.0) -> Iterator[tuple[str, int]]:
    """Serve the dashboard on a store; give its address and process id. RuntimeError if it fails."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "dashboard"),
        *("--port", str(port), "--address", "127.0.0.1"),
        *arguments,
    ]
    environ = os.environ | {STORE_VARIABLE: store}
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health", process, timeout_s)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(timeout=20)


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(address: str, process: "subprocess.Popen[bytes]", timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(address, timeout=2):  # noqa: S310 - our own server
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"the server did not answer at {address} within {timeout_s:.0f} s")


def expected_noise(address: str) -> bool:
    """Return whether a failed request is one that Streamlit makes on every deep link."""
    return address.endswith(("/_stcore/health", "/_stcore/host-config"))


def flags(extra: Sequence[str] = ()) -> list[str]:
    """Return the browser's command line."""
    return [*CHROMIUM_FLAGS, *extra]
