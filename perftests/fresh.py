"""After a lost device context, as an illegal address leaves it, the other tests run elsewhere.

The context of a CUDA process cannot be mended. The tests that remain run in a fresh process, and
their reports are told here as if they had run here. pytest-benchmark's own table and JSON hold none
of them; the records do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftests.options import worker_index

if TYPE_CHECKING:
    from collections.abc import Sequence

LOST: pytest.StashKey[str] = pytest.StashKey()
"""The test that lost this process its device, once one has."""
_ELSEWHERE: pytest.StashKey[dict[str, list[pytest.TestReport]]] = pytest.StashKey()
_CARRIED = (
    "--bandwatch-device",
    "--bandwatch-mode",
    "--bandwatch-budget",
    "--bandwatch-max-seconds",
    "--bandwatch-max-samples",
    "--bandwatch-lock-timeout",
)
_SWITCHES = ("--bandwatch-quick", "--bandwatch-energy", "--bandwatch-ncu")
_DROPPED = ("PYTEST_XDIST", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")


def run_elsewhere(item: pytest.Item, *, timing: bool) -> bool:
    """Tell the reports of a test from a fresh process; False while this process has its device."""
    config = item.config
    if LOST not in config.stash:
        return False
    if item.nodeid not in config.stash.setdefault(_ELSEWHERE, {}):
        nodeids = _remaining(item)
        config.stash[_ELSEWHERE].update(_reports(config, nodeids, timing=timing))
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in config.stash[_ELSEWHERE][item.nodeid]:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _remaining(item: pytest.Item) -> list[str]:
    """Return this test and those after it; a parallel worker does not know what it will get."""
    if worker_index() is not None:
        return [item.nodeid]
    items = item.session.items
    return [other.nodeid for other in items[items.index(item) :]]


def _reports(
    config: pytest.Config, nodeids: Sequence[str], *, timing: bool
) -> dict[str, list[pytest.TestReport]]:
    """Run tests in a fresh process and return their reports, one of a failure where none came."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.jsonl"
        done = subprocess.run(
            [sys.executable, *arguments(config, nodeids, path, timing=timing)],
            cwd=config.rootpath,
            env={k: v for k, v in os.environ.items() if not k.startswith(_DROPPED)},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = path.read_text().splitlines() if path.exists() else []
    found: defaultdict[str, list[pytest.TestReport]] = defaultdict(list)
    for line in lines:
        report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
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


def arguments(
    config: pytest.Config, nodeids: Sequence[str], path: Path, *, timing: bool
) -> list[str]:
    """Return what makes Python run these tests as this session would and write their reports."""
    option = config.getoption
    carried = [f"{name}={option(name)}" for name in _CARRIED if option(name) is not None]
    switches = [name for name in _SWITCHES if option(name)]
    return [
        *("-m", "pytest", *nodeids),
        *("-p", "perftests.plugin", "-p", "no:cacheprovider", "-q"),
        f"--bandwatch-timing={'on' if timing else 'off'}",
        f"--bandwatch-reports={path}",
        *carried,
        *switches,
    ]


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
