"""Every command that measures in a process of its own tells why that process could not start."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tracker.tests.loop import fake, project
from tracker.tests.loop.conftest import Command

NO_PLUGIN = '[tool.bandwatch]\nsuite = ["perf"]\n[tool.bandwatch.ci]\narguments = ["-p", "no:perftests.plugin"]\n'
BROKEN = "import nothing_here\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three commits of a project; the working folder."""
    made = tmp_path / "project"
    project.make(made)
    for number in range(2):
        project.change(made, {"number.txt": str(number)}, {"relu": 1.0, "add": 1.0})
    monkeypatch.delenv("BANDWATCH_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(made)
    return made


COMMANDS = (
    "ci",
    "ab main~1 main",
    f"bisect {project.RELU} main~2 main",
    "backfill main~1..main",
)


@pytest.mark.usefixtures("no_ci")
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split()[0])
def test_each_command_tells_of_a_plugin_that_is_not_there(
    root: Path, bandwatch: Command, line: str
) -> None:
    (root / "pyproject.toml").write_text(NO_PLUGIN)
    answer = bandwatch(*shlex.split(line))
    told = answer.out + answer.err
    assert answer.code != 0
    assert "cannot start pytest" in told
    assert "unrecognized arguments: --bandwatch-timing" in told
    assert "install Bandwatch and its extra `measure` for it" in told


@pytest.mark.usefixtures("no_ci")
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split()[0])
def test_each_command_tells_of_a_conftest_that_cannot_be_imported(
    root: Path, bandwatch: Command, line: str
) -> None:
    for text in ("", "# more\n"):
        fake.commit(root, "Break", {"conftest.py": BROKEN + text})
    answer = bandwatch(*shlex.split(line.replace("main~2", "main~1")))
    assert answer.code != 0
    assert "No module named 'nothing_here' (in " in answer.out + answer.err


def test_the_base_of_a_branch_is_told_too(root: Path) -> None:
    fake.commit(root, "Break", {"conftest.py": BROKEN})
    fake.git(root, "switch", "--quiet", "--create", "topic")
    fake.commit(root, "Mend", {"conftest.py": project.CONFTEST})
    command = [sys.executable, "-m", "pytest", "-q", "--benchmark", "--benchmark-base", "perf"]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "was not measured: cannot start pytest in " in done.stdout
    assert "No module named 'nothing_here' (in " in done.stdout
