"""After a lost device context, as an illegal address leaves it, the other tests run elsewhere.

The context of a CUDA process cannot be mended. The tests that remain run in a fresh process, and
their reports are told here as if they had run here. pytest-benchmark's own table and JSON hold none
of them; the records do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftests import child
from perftests.lost import LOST
from perftests.options import measures, worker_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from perftests.harness.budget import Budget

_ELSEWHERE: pytest.StashKey[dict[str, list[pytest.TestReport]]] = pytest.StashKey()
_CARRIED = ("--bandwatch-max-seconds", "--bandwatch-max-samples", "--bandwatch-lock-timeout")
_SWITCHES = ("--bandwatch-energy", "--bandwatch-ncu")


def run_elsewhere(item: pytest.Item, *, timing: bool, budget: Callable[[], Budget | None]) -> bool:
    """Tell the reports of a test from a fresh process; False while this process has its device.

    `budget` gives the session's sampling time, of which the fresh process gets what is left.
    """
    config = item.config
    if LOST not in config.stash:
        return False
    if item.nodeid not in config.stash.setdefault(_ELSEWHERE, {}):
        items = _remaining(item)
        how = [f"--bandwatch-timing={'on' if timing else 'off'}"]
        seconds = _part(budget(), items) if timing else None
        if seconds is not None:
            how.append(f"--bandwatch-budget={seconds}")
        nodeids = [other.nodeid for other in items]
        config.stash[_ELSEWHERE].update(_reports(config, nodeids, how))
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in config.stash[_ELSEWHERE][item.nodeid]:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _remaining(item: pytest.Item) -> list[pytest.Item]:
    """Return this test and those after it; a parallel worker does not know what it will get."""
    items = item.session.items
    return [item] if worker_index() is not None else items[items.index(item) :]


def _part(budget: Budget | None, items: Sequence[pytest.Item]) -> float | None:
    """Take these tests' part of the sampling time that is left, in seconds."""
    count = sum(map(measures, items))
    if budget is None or not count:
        return None
    part = budget.sample_s()
    for _ in range(count):
        budget.spent(part)
    return count * part


def _reports(
    config: pytest.Config, nodeids: Sequence[str], how: Sequence[str]
) -> dict[str, list[pytest.TestReport]]:
    """Run tests in a fresh process and return their reports, one of a failure where none came."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.jsonl"
        words = [*child.arguments(config, nodeids, Path(folder) / "cache"), *how, *_flags(config)]
        done = subprocess.run(
            [sys.executable, *words, f"--bandwatch-reports={path}"],
            cwd=child.folder(config),
            env=child.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        lines = path.read_text().splitlines() if path.exists() else []
    found: defaultdict[str, list[pytest.TestReport]] = defaultdict(list)
    for line in lines:
        report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
        if isinstance(report.longrepr, list):  # where a test was skipped: JSON has no tuples
            report.longrepr = tuple(report.longrepr)
        found[report.nodeid].append(report)
    said = (done.stderr or done.stdout).strip().splitlines()[-1:]
    told = (
        f"no report came from the fresh process that ran after {config.stash[LOST]} lost the "
        f"device; it ended with {done.returncode}: {' '.join(said)}"
    )
    for nodeid in nodeids:
        if not any(report.when == "teardown" for report in found[nodeid]):
            found[nodeid].append(_failed(nodeid, told))
    return found


def _failed(nodeid: str, told: str) -> pytest.TestReport:
    location = (nodeid.split("::", maxsplit=1)[0], None, nodeid)
    return pytest.TestReport(nodeid, location, {}, "failed", told, "call")


def _flags(config: pytest.Config) -> list[str]:
    """Return the flags that say how to measure, as they stand in this session."""
    option = config.getoption
    carried = [f"{name}={option(name)}" for name in _CARRIED if option(name) is not None]
    return [*carried, *(name for name in _SWITCHES if option(name))]


class ReportWriter:
    """Writes each report of this session as a line of JSON."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append a report."""
        data: Any = self._config.hook.pytest_report_to_serializable(
            config=self._config, report=report
        )
        with self._path.open("a") as file:
            file.write(json.dumps(data) + "\n")
