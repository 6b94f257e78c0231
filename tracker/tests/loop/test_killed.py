"""`bandwatch ci` killed before each step that it would note: it goes on, and measures nothing twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tracker.queries import runs
from tracker.store import Store
from tracker.tests.loop import fake, project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]
_MEASURED = """
def note(request):
    import os
    with open(os.environ["MEASURED"], "a") as file:
        journal = os.path.basename(os.environ["BANDWATCH_JOURNAL"])
        file.write(f"{journal} {request.node.nodeid}\\n")
"""
CONFTEST = project.CONFTEST.replace(
    "    def measure(kernel):\n", "    def measure(kernel):\n        note(request)\n"
)


def ci(root: Path, log: Path, steps: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BANDWATCH", "GITHUB"))}
    environment |= {
        "MEASURED": str(log),
        "STEPS": str(steps),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "120",
    }
    environment.pop("CI", None)
    return subprocess.run(
        [sys.executable, "-P", "-m", "tracker.tests.loop.killed", "ci", *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [(), ("--ab",)])
def test_killed_before_every_step_it_measures_each_test_as_often_as_undisturbed(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    root, log = tmp_path / "project", tmp_path / "measured"
    project.make(root)
    even = {"relu": 1.0, "add": 1.0}
    project.change(root, {"conftest.py": CONFTEST + _MEASURED}, even)
    assert ci(root, log, 99).returncode == 0
    project.change(root, {}, {"relu": 1.3, "add": 1.0})
    log.unlink()
    undisturbed = ci(root, log, 99, *arguments)
    assert undisturbed.returncode == 1, undisturbed.stdout + undisturbed.stderr
    expected = Counter(log.read_text().splitlines())
    assert expected[f"check.jsonl {project.RELU}"] == expected[f"measure.jsonl {project.ADD}"] == 1
    assert sum(project.RELU in line for line in expected) > 2
    steps = json.loads((root / ".bandwatch/ci/session.json").read_text())["entries"]
    # The very same tree once more, so that the session is a new one of the same plan.
    log.unlink()
    codes = []
    while (done := ci(root, log, 1, *arguments)).returncode == -signal.SIGKILL:
        codes.append(done.returncode)
        assert len(codes) < 2 * len(steps), done.stderr
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(codes) >= len(steps) - 2
    assert Counter(log.read_text().splitlines()) == expected
    assert "regression" in done.stdout
    with Store.open(f"sqlite:///{root}/.bandwatch/bandwatch.db", read_only=True) as store:
        found = runs(store, limit=None)
    assert len({run.run_id for run in found}) == len(found)
    # Both sessions are in the store, with as many runs each.
    head = fake.git(root, "rev-parse", "HEAD")
    assert sum(run.sha == head for run in found) % 2 == 0
    assert not list((root / ".bandwatch/worktrees").glob("*"))
