"""What every visitor asks for first, computed before they ask.

Judging the newest runs of a large store takes seconds. A thread does it when the server starts and
again whenever the store has changed, with the functions that the pages call, so that the pages find
the results in their caches. The pages never depend on it: without it they only wait longer.
"""

import logging
import threading

import pandas as pd

from dashboard import data, findings, history, judging
from dashboard.data import Snapshot
from dashboard.filters import default_branch
from dashboard.metrics import BANDWIDTH
from dashboard.session import open_store, store_address
from tracker.errors import TrackerError

_EVERY_S = 2.0
_RETRY_S = 10.0
_log = logging.getLogger(__name__)


class Warmer(threading.Thread):
    """Keeps the caches warm for as long as the server runs; `ready` is set after the first time."""

    def __init__(self, address: str) -> None:
        super().__init__(name="bandwatch-warmer", daemon=True)
        self._address = address
        self.ready = threading.Event()
        self._stopped = threading.Event()
        self._done: tuple[str, int] | None = None

    def run(self) -> None:
        """Look for changes until the server ends."""
        while not self._stopped.is_set():
            pause = _EVERY_S
            try:
                self.look()
            except TrackerError:
                # The pages tell what is wrong with the store.
                pause = _RETRY_S
            except Exception:  # noqa: BLE001 - a thread that ends would never warm anything again
                _log.exception("the caches could not be warmed")
                pause = _RETRY_S
            self.ready.set()
            self._stopped.wait(pause)

    def look(self) -> bool:
        """Warm the caches if the store has changed since the last time; say whether it had."""
        store = open_store(self._address, read_only=True)
        snapshot = Snapshot(store, store.revision())
        if self._done == (store.name, snapshot.revision):
            return False
        warm(snapshot)
        self._done = (store.name, snapshot.revision)
        return True

    def stop(self) -> None:
        """End the thread at its next pause."""
        self._stopped.set()


def warm(snapshot: Snapshot) -> None:
    """Compute what the overview shows without any choice, and what the filters offer."""
    data.catalogue(snapshot)
    branch = default_branch(data.branches(snapshot, None))
    parts = []
    for place, model in enumerate(data.models(snapshot)):
        meant = data.meant(snapshot, model.name, branch)
        if meant is None:
            continue
        verdicts = judging.of_meant(snapshot, meant)
        if place < findings.MAX_MODELS:
            parts.append(findings.of_run(snapshot, meant.run, verdicts, branch))
    if parts:
        _detail(snapshot, findings.ordered(parts), branch)


def _detail(snapshot: Snapshot, found: pd.DataFrame, branch: str | None) -> None:
    """Compute the details of the first finding, which is the one that is shown."""
    if not len(found):
        return
    first = found.iloc[0]
    case_key, run_id = str(first["case_key"]), str(first["run_id"])
    series = data.series(snapshot, case_key, str(first["gpu"]), branch)
    history.load(snapshot, [series], findings.WINDOW, BANDWIDTH, dots=history.FEW_DOTS)
    data.run(snapshot, run_id)
    data.result(snapshot, run_id, case_key)


def start(wait_s: float) -> Warmer:
    """Start warming the store that the server shows; come back when it is warm or time is up."""
    warmer = Warmer(store_address())
    warmer.start()
    warmer.ready.wait(wait_s)
    return warmer
