"""How fast the pages are on a store: `python -m dashboard.speed --store ADDRESS`, in Chromium.

Ready means that the script has run and every chart is drawn. Cold is the first page of a new
server, once it has computed what every visitor asks for first, in a new browser that has nothing
cached; warm is the same page again, by a click on its name at the
top; reloaded is that page with the browser's whole start. Beside each figure stand the processor
time that the server took and the machine's load, since a busy machine makes every figure larger.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dashboard import serving
from dashboard.pictures import SETTLED
from tracker import queries
from tracker.errors import TrackerError
from tracker.store import Store

# Seconds on two cores, and the growth of the server's memory from the 20th page load to the last.
LIMITS_S = {"cold": 2.5, "warm": 0.7, "filter change": 0.5, "series": 1.0}
LIMIT_GROWTH = 0.05
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure with its limit, in the unit of its name."""

    name: str
    value: float
    limit: float | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether the figure is above its limit."""
        return self.limit is not None and self.value > self.limit

    @property
    def line(self) -> str:
        """The figure as a line of a table."""
        limit = "" if self.limit is None else f"{self.limit:.2f}"
        word = "" if self.limit is None else "TOO MUCH" if self.missed else "ok"
        return f"{self.name:<24}{self.value:8.3f}{limit:>7}  {word:<8}  {self.note}".rstrip()


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
    return 1 if any(figure.missed for figure in found) else 0


def measure(store: str, *, loads: int, repeats: int) -> Iterator[Figure]:
    """Yield every figure, printing each as it comes."""
    from playwright.sync_api import sync_playwright

    executable = serving.chromium()
    if executable is None:
        raise RuntimeError("no Chromium was found; install it")
    series = _longest_series(store)
    began = time.perf_counter()
    with serving.server(store) as (address, process), sync_playwright() as driver:
        started = Figure("server's start", time.perf_counter() - began, note=_load())
        settled = Figure("server idle after", _idle(process) - began, note=_load())
        browser = driver.chromium.launch(executable_path=executable, args=serving.flags())
        meter = _Meter(browser.new_page(), address, process)
        # A browser's own start is none of ours.
        meter.page.goto("about:blank")
        meter.page.wait_for_timeout(2000)
        figures = _figures(meter, series, loads=loads, repeats=repeats)
        for figure in chain([started, settled], figures):
            print(figure.line, flush=True)
            yield figure
        browser.close()


def _idle(process: int, limit_s: float = 180.0) -> float:
    """Return when the server had nothing left to compute, by the clock of `time.perf_counter`."""
    end = time.perf_counter() + limit_s
    taken = _processor_s(process)
    while time.perf_counter() < end:
        time.sleep(1.0)
        taken, before = _processor_s(process), taken
        if taken - before < 0.1:
            break
    return time.perf_counter()


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


# Marks the page as waiting until its script is seen to run.
_WATCH = """(() => {
  const app = document.querySelector("[data-testid=stApp]");
  if (!app) return;
  window.bandwatchWaits = true;
  const watch = new MutationObserver(() => {
    if (app.dataset.testScriptState === "running") {
      window.bandwatchWaits = false;
      watch.disconnect();
    }
  });
  watch.observe(app, { attributes: true, attributeFilter: ["data-test-script-state"] });
})()"""


@dataclass(frozen=True, slots=True)
class _Meter:
    """A page of the browser, and the server that it asks."""

    page: Any
    address: str
    process: int

    def open(self, path: str) -> float:
        """Return the seconds until a page is ready, opened by its address."""
        return self.timed(lambda: self.page.goto(f"{self.address}/{path}"))

    def follow(self, name: str) -> float:
        """Return the seconds until a page is ready, opened by its name at the top."""
        return self.timed(lambda: self.page.get_by_role("link", name=name, exact=True).click())

    def timed(self, action: Callable[[], object]) -> float:
        """Return the seconds from an action until the script has run and the page is ready."""
        # A new document has forgotten the mark; in the old one it waits for the script to start.
        self.page.evaluate(_WATCH)
        start = time.perf_counter()
        action()
        self.page.wait_for_function(f"window.bandwatchWaits !== true && {SETTLED}", polling=20)
        return time.perf_counter() - start

    def figure(
        self, name: str, limit: str | None, actions: Sequence[Callable[[], float]]
    ) -> Figure:
        """Return the median of what the actions took."""
        before = _processor_s(self.process), self._browser_s()
        value = statistics.median([action() for action in actions])
        server = (_processor_s(self.process) - before[0]) / len(actions)
        browser = (self._browser_s() - before[1]) / len(actions)
        several = f"median of {len(actions)}, " if len(actions) > 1 else ""
        note = f"{several}server {server:.2f} s, browser {browser:.2f} s, {_load()}"
        return Figure(name, value, LIMITS_S[limit] if limit else None, note)

    def _browser_s(self) -> float:
        """Return the processor time of this program's other children: the browser's processes."""
        ours = _descendants(os.getpid()) - {os.getpid(), self.process}
        return sum(_processor_s(process) for process in ours)


def _figures(meter: _Meter, series: str, *, loads: int, repeats: int) -> Iterator[Figure]:
    def again(action: Callable[[], float]) -> list[Callable[[], float]]:
        return [action] * repeats

    def overview() -> float:
        meter.follow("Correctness")
        return meter.follow("Overview")

    def choose(name: str) -> float:
        button = meter.page.get_by_role("radio", name=name)
        return meter.timed(lambda: button.click(force=True))

    yield meter.figure("first page, cold", "cold", [lambda: meter.open("")])
    yield meter.figure("first page, warm", "warm", again(overview))
    yield meter.figure("first page, reloaded", None, again(lambda: meter.open("")))
    meter.open("series")
    for name in ("time", "bandwidth"):
        yield meter.figure(f"filter change, {name}", "filter change", [lambda n=name: choose(n)])  # type: ignore[misc]
    changes = [lambda: choose("time"), lambda: choose("bandwidth")] * repeats
    yield meter.figure("filter change, again", "filter change", changes)
    link = f"series?{series}"

    def widen() -> float:
        meter.open(link.replace("window=everything", "window=20+commits"))
        meter.page.get_by_role("combobox", name="Window").click()
        option = meter.page.get_by_role("option", name="everything")
        return meter.timed(option.click)

    yield meter.figure("longest series", "series", again(widen))
    yield meter.figure("longest series, reloaded", None, again(lambda: meter.open(link)))
    yield _memory(meter, loads)


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()}"


def _processor_s(process: int) -> float:
    """Return the processor time that a process and its threads have taken."""
    fields = _stat(process)
    if not fields:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str]:
    """Return what the kernel tells of a process after its name, nothing once it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def _descendants(process: int) -> set[int]:
    """Return a process and those that it and its children have started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        if fields := _stat(int(path.name)):
            parents[int(path.name)] = int(fields[1])
    found, size = {process}, 0
    while len(found) > size:
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found


def _memory(meter: _Meter, loads: int) -> Figure:
    """Return how much the server's memory grew over page loads, as a part of what it was."""
    paths = ("", "series", "compare", "kernels", "roofline", "correctness", "runs", "changes")
    first = 0.0
    for load in range(loads):
        meter.open(paths[load % len(paths)])
        if load == min(_WARM_UP, loads - 1):
            first = _resident_bytes(meter.process)
    last = _resident_bytes(meter.process)
    note = f"{first / 2**20:.0f} to {last / 2**20:.0f} MiB over {loads} loads, {_load()}"
    return Figure("memory growth", last / first - 1, LIMIT_GROWTH, note)


def _resident_bytes(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024
    raise RuntimeError(f"process {process} does not tell its memory")


if __name__ == "__main__":
    sys.exit(main())
