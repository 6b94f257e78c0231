"""The README: every command in it works, every link leads somewhere, every word is explained."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tracker.cli.main import main
from tracker.config import load_config
from tracker.errors import ExitCode
from tracker.report.judged import MARKS
from tracker.tests.cli.conftest import Command, bandwatch, filled, four_runs, project

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
__all__ = ["bandwatch", "filled", "four_runs", "project"]


def commands() -> list[str]:
    lines = [line for kind, block in BLOCKS if kind == "console" for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    return list(dict.fromkeys(line[2:].partition("  #")[0].strip() for line in lines))


def of(program: str) -> list[str]:
    return [line for line in commands() if shlex.split(line)[0] == program]


def make(*arguments: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Run make with this interpreter's environment, which counts as installed."""
    stamp = f"{sys.prefix}/.installed-dev"
    command = ["make", "--old-file", stamp, f"VENV={sys.prefix}", "EXTRAS=dev", *arguments]
    ours = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    return subprocess.run(
        command, cwd=ROOT, env=ours | options, capture_output=True, text=True, check=False
    )


def test_every_command_is_of_a_kind_that_is_checked_here() -> None:
    known = {"make", "bandwatch", "pytest", "source", "nvidia-smi", "pip"}
    assert {shlex.split(line)[0] for line in commands()} == known


@pytest.mark.parametrize("line", of("make"))
def test_every_make_target_exists_and_is_listed(line: str) -> None:
    target = shlex.split(line)[1]
    listed = [text.split()[0] for text in make("help").stdout.splitlines()]
    assert target in listed
    dry = make("--dry-run", *shlex.split(line)[1:])
    assert dry.returncode == 0, dry.stderr
    assert "pip install" not in dry.stdout


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("line", of("bandwatch"))
def test_every_bandwatch_command_runs(line: str, bandwatch: Command) -> None:
    answer = bandwatch(*shlex.split(line)[1:])
    # A verdict, or a machine that cannot measure, is an answer; wrong use or a crash is not.
    allowed = {0, 1, 3, 4} | ({2} if "no recorded runs" in answer.err else set())
    assert answer.code in allowed, answer.err


@pytest.mark.parametrize("line", of("pip"))
def test_every_extra_that_is_installed_exists(line: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (whole,) = [text for text in TEXT.splitlines() if line in text]
    extras = set(re.findall(r"\[(\w+)\]", whole))  # the comment's too
    assert extras
    assert extras <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("line", of("pytest"))
def test_every_pytest_command_collects_tests(line: str) -> None:
    command = [sys.executable, "-m", *shlex.split(line), "--collect-only", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.slow
def test_make_bench_measures_records_and_judges(tmp_path: Path) -> None:
    # A few cases only: the whole suite takes more than a minute.
    arguments = "-k 'test_relu and torch and float32' --bandwatch-quick"
    store = f"sqlite:///{tmp_path}/readme.db"
    first = make("bench", f"ARGS={arguments}", BANDWATCH_STORE=store)
    assert f"recorded in {store}" in first.stdout, first.stdout[-2000:] + first.stderr[-2000:]
    assert "no baseline" in first.stdout
    assert first.returncode == 0
    assert main(["check", "--store", store]) == ExitCode.OK


@pytest.mark.parametrize("program", ["make", "bash"])
def test_what_the_commands_need_is_on_every_machine(program: str) -> None:
    assert shutil.which(program)


def test_the_activation_script_is_where_the_readme_says() -> None:
    (line,) = of("source")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert line == "source .venv/bin/activate"
    assert re.search(r"^VENV \?= \.venv$", makefile, re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)", TEXT))
def test_every_link_leads_somewhere(link: str) -> None:
    # Other tools' own pages aside, which nobody asks here.
    assert link.startswith("https://github.com/") or (ROOT / link).exists(), link


def test_the_settings_shown_are_valid(tmp_path: Path) -> None:
    (block,) = [block for kind, block in BLOCKS if kind == "toml"]
    (tmp_path / "pyproject.toml").write_text(block)
    config = load_config(start=tmp_path, environ={})
    assert (
        config.thresholds.policy.minimal_effect
        == tomllib.loads(block)["tool"]["bandwatch"]["thresholds"]["minimal_effect"]
    )
    assert [override.owner for override in config.thresholds.overrides] == ["A. Person"]


def test_every_exit_code_is_explained() -> None:
    told = re.findall(r"^\| (\d) \|", TEXT, re.MULTILINE)
    assert told == [str(int(code)) for code in ExitCode]


def test_the_marks_explained_are_those_of_the_report() -> None:
    told = re.findall(r"[▲▼=?] (?:slower|faster|no change|undecided)", " ".join(TEXT.split()))
    told = list(dict.fromkeys(told))  # a row of the demo shows one of them first
    assert told == ["▲ slower", "▼ faster", "= no change", "? undecided"]
    assert set(told) <= set(MARKS.values())


def test_every_word_of_the_project_is_in_the_glossary() -> None:
    glossary = TEXT.partition("## Words")[2].partition("##")[0]
    words = re.findall(r"^\| ([a-z ]+) \|", glossary, re.MULTILINE)
    expected = (
        "kernel implementation case measurement sample result environment run series baseline"
    )
    assert words[1:11] == expected.split()
    assert {"effect size", "change point", "verdict", "copy fraction"} <= set(words)
