"""A small project with a history, and the command run inside it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tracker.cli.main import main
from tracker.tests.cli.conftest import Answer
from tracker.tests.loop import fake, project

Command = Callable[..., Answer]
OUT = Path(".bandwatch/ci")


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six commits, the fourth makes ReLU slower; the tag v1.0 is the first. The working folder."""
    root = tmp_path / "project"
    project.make(root)
    fake.git(root, "tag", "v1.0")
    for number in range(1, 6):
        relu = 1.2 if number >= 3 else 1.0
        project.change(root, {"number.txt": str(number)}, {"relu": relu, "add": 1.0})
    monkeypatch.delenv("BANDWATCH_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> fake.FakeMeasure:
    """Measure the project without starting a process: what it would do is read from its commits."""
    cases = {
        project.RELU: fake.CASES[fake.RELU],
        project.ADD: fake.CASES[fake.ADD],
    }
    names = {project.RELU: "relu", project.ADD: "add"}
    measure = fake.FakeMeasure(cases=cases, names=names)
    monkeypatch.setattr("tracker.loop.workplace.PytestMeasure", lambda settings: measure)
    return measure


@pytest.fixture
def bandwatch(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, called with its arguments."""

    def call(*arguments: str) -> Answer:
        code = main(arguments)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever CI runs these tests, the command must not see it."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITLAB_CI", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tracker.cli.ci._unfit", lambda *, gpu: None)


@pytest.fixture
def baseline(history: Path, no_processes: fake.FakeMeasure, bandwatch: Command) -> Path:
    """Two commits before the slow one have been measured; the third is checked out."""
    for name in ("main~4", "main~3"):
        fake.git(history, "switch", "--quiet", "--detach", name)
        assert bandwatch("ci").code == 0
    no_processes.calls.clear()
    return history


def report(folder: Path = OUT) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def outcomes(folder: Path = OUT) -> dict[str, str]:
    return {row["kernel"]: row["outcome"] for row in report(folder)["tables"]["verdicts"]}
