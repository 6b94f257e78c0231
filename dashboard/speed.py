"""How fast the pages are on a store: `python -m dashboard.speed --store ADDRESS`, in Chromium.

Ready means that the script has run and every chart is drawn. Cold is the first page of a new server
in a browser that has nothing cached; warm is the same page again.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dashboard import serving
from dashboard.pictures import SETTLED
from tracker import queries
from tracker.errors import TrackerError
from tracker.store import Store

# Seconds on two cores, and the growth of the server's memory from the 20th page load to the last.
LIMITS_S = {"first page, cold": 2.5, "first page, warm": 0.7, "filter change": 0.5, "series": 1.0}
LIMIT_GROWTH = 0.05
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure with its limit, in the unit of its name."""

    name: str
    value: float
    limit: float
    note: str = ""

    @property
    def line(self) -> str:
        """The figure as a line of a table."""
        word = "ok" if self.value <= self.limit else "TOO MUCH"
        return f"{self.name:<28}{self.value:8.3f}{self.limit:8.2f}  {word}  {self.note}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and return 1 when a figure is above its limit."""
    parser = argparse.ArgumentParser(prog="python -m dashboard.speed", description=__doc__)
    parser.add_argument("--store", required=True, help="address of the store to show")
    parser.add_argument("--loads", type=int, default=200, help="page loads for the memory figure")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions of the warm figures")
    chosen = parser.parse_args(arguments)
    try:
        found = list(measure(chosen.store, loads=chosen.loads, repeats=chosen.repeats))
    except (TrackerError, RuntimeError) as error:
        print(f"cannot measure: {error}", file=sys.stderr)
        return 2
    return 1 if any(figure.value > figure.limit for figure in found) else 0


def measure(store: str, *, loads: int, repeats: int) -> Iterator[Figure]:
    """Yield every figure, printing each as it comes."""
    from playwright.sync_api import sync_playwright

    executable = serving.chromium()
    if executable is None:
        raise RuntimeError("no Chromium was found; install it")
    series = _longest_series(store)
    with serving.server(store) as (address, process), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=serving.flags())
        page = browser.new_page()
        for figure in _figures(page, address, process, series, loads=loads, repeats=repeats):
            print(figure.line, flush=True)
            yield figure
        browser.close()


def _longest_series(store: str) -> str:
    """Return the parameters that show the longest series whole."""
    with Store.open(store, read_only=True) as opened:
        longest = max(queries.series_list(opened), key=lambda found: found.results)
    return urlencode(
        {
            "gpu": longest.gpu_model,
            "branch": "all",
            "kernel": longest.case.kernel,
            "case": longest.case.label,
            "window": "everything",
        }
    )


def _figures(
    page: Any, address: str, process: int, series: str, *, loads: int, repeats: int
) -> Iterator[Figure]:
    def open_page(path: str) -> float:
        return _timed(lambda: page.goto(f"{address}/{path}"), page)

    yield Figure("first page, cold", open_page(""), LIMITS_S["first page, cold"])
    warm = statistics.median(open_page("") for _ in range(repeats))
    yield Figure("first page, warm", warm, LIMITS_S["first page, warm"], f"median of {repeats}")
    open_page("series")
    changes = []
    for _ in range(repeats):
        for name in ("time", "bandwidth"):
            button = page.get_by_role("radio", name=name)
            changes.append(_timed(lambda b=button: b.click(force=True), page))  # type: ignore[misc]
    yield Figure("filter change", statistics.median(changes), LIMITS_S["filter change"])
    yield Figure("series, cold", open_page(f"series?{series}"), LIMITS_S["series"])
    again = statistics.median(open_page(f"series?{series}") for _ in range(repeats))
    yield Figure("series, warm", again, LIMITS_S["series"])
    yield _memory(open_page, process, loads)


def _memory(open_page: Callable[[str], float], process: int, loads: int) -> Figure:
    """Return how much the server's memory grew over page loads, as a part of what it was."""
    paths = ("", "series", "compare", "kernels", "roofline", "correctness", "runs", "changes")
    first = 0.0
    for load in range(loads):
        open_page(paths[load % len(paths)])
        if load == min(_WARM_UP, loads - 1):
            first = _resident_bytes(process)
    last = _resident_bytes(process)
    note = f"{first / 2**20:.0f} to {last / 2**20:.0f} MiB over {loads} loads"
    return Figure("memory growth", last / first - 1, LIMIT_GROWTH, note)


def _resident_bytes(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024
    raise RuntimeError(f"process {process} does not tell its memory")


def _timed(action: Callable[[], object], page: Any) -> float:
    """Return the seconds from an action until the page is ready again."""
    start = time.perf_counter()
    action()
    # The script state turns to running a moment after a click: look twice.
    page.wait_for_function(SETTLED, polling=20)
    page.wait_for_timeout(30)
    page.wait_for_function(SETTLED, polling=20)
    return time.perf_counter() - start - 0.03


if __name__ == "__main__":
    sys.exit(main())
