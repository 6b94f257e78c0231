"""The command as a whole: help for everything, one line for every failure, examples that run."""

import gc
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click
import pytest

import tracker.cli
from tracker.cli.main import COMMANDS, cli, main
from tracker.tests.cli.conftest import Command

_EXAMPLE = re.compile(r"^\s*Example: (bandwatch .+)$", re.MULTILINE)


def commands() -> Iterator[tuple[str, click.Command]]:
    def walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None, name
                yield from walk(f"{path} {name}", found)

    return walk("bandwatch", cli)


ALL = dict(commands())


def errors_of(code: str) -> str:
    """Return what a process of its own that runs this code writes to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


# These measure commits: their examples run in a project that has some (tests/loop/test_commands.py).
_MEASURING = ("bandwatch ab ", "bandwatch bisect ", "bandwatch backfill ", "bandwatch ci")


def examples() -> list[str]:
    found = [line for command in ALL.values() for line in _EXAMPLE.findall(command.help or "")]
    return [line for line in found if not line.startswith(_MEASURING)]


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_help_with_an_example(path: str) -> None:
    command = ALL[path]
    assert command.help
    assert _EXAMPLE.search(command.help), f"{path} shows no example"
    assert command.get_short_help_str(200)


@pytest.mark.parametrize("path", ALL)
def test_every_option_has_help_and_every_argument_is_explained(path: str) -> None:
    command = ALL[path]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.opts}"
        else:
            name = (parameter.metavar or parameter.name or "").upper().rstrip(".").rstrip("S")
            assert name in (command.help or "").upper(), f"{path} {name}"


@pytest.mark.parametrize("example", examples())
def test_every_documented_example_runs(example: str, filled: Path, bandwatch: Command) -> None:
    # Whoever runs the tests need not have told git a name.
    subprocess.run(["git", "config", "user.name", "A. Person"], cwd=filled, check=True)
    answer = bandwatch(*shlex.split(example)[1:])
    # A verdict, an unfit machine, a missing demo or a commit that only the example has is an
    # answer; wrong use or a crash is not.
    absent = ("no recorded runs", "cannot find run '3f2a91c'", "no such waiver holds")
    allowed = {0, 1, 3, 4} | ({2} if any(told in answer.err for told in absent) else set())
    assert answer.code in allowed, answer.err


def test_a_day_s_commands_are_there() -> None:
    names = cli.list_commands(click.Context(cli))
    assert names[:9] == [
        *("record", "check", "compare", "history", "show", "list", "doctor", "demo", "dashboard"),
    ]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["check", "--no-such-option"],
        ["check", "--format", "xml"],
        ["check", "no-such-run"],
        ["check", "--store", "sqlite:///no-such-file.db"],
        ["check", "--store", "mysql://host/db"],
        ["compare"],
        ["compare", "no-such-branch"],
        ["history", "no-such-case"],
        ["show", "no-such-case"],
        ["show", "relu", "--run", "no-such-run"],
        ["show", "relu", "--gpu", "no-such-model"],
        ["list", "--limit", "0"],
        ["list", "--limit", "many"],
        ["record"],
        ["record", "no-such-file.json"],
        ["dashboard", "--port", "99999999"],
        ["list", "a\x1b[31mb"],
    ],
)
def test_wrong_use_is_one_line_on_stderr_and_exit_2(
    bandwatch: Command, arguments: list[str]
) -> None:
    answer = bandwatch(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("bandwatch: ")
    assert answer.err.count("\n") == 1
    assert "\x1b" not in answer.err


def test_bad_settings_are_one_line(project: Path, bandwatch: Command) -> None:
    (project / "pyproject.toml").write_text("[tool.bandwatch]\nstor = 'x'\n")
    answer = bandwatch("list")
    assert answer.code == 2
    assert "unknown key 'stor'" in answer.err


def test_an_internal_error_is_exit_5_and_says_how_to_see_it(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("postgresql://me:hunter2@host/db broke")

    monkeypatch.setattr("tracker.cli.options.load_config", broken)
    answer = bandwatch("list", "--limit", "3")
    assert answer.code == 5
    assert answer.err.count("\n") == 1
    assert "RuntimeError" in answer.err
    assert "bandwatch --debug list --limit 3" in answer.err
    assert "hunter2" not in answer.err

    debugged = bandwatch("--debug", "list")
    assert debugged.code == 5
    assert "Traceback" in debugged.err


def test_an_interrupt_is_one_line(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracker.cli.options.load_config", interrupted)
    answer = bandwatch("list")
    # click ends the line on which a terminal echoes ^C.
    assert (answer.code, answer.err) == (130, "\nbandwatch: interrupted\n")


def test_help_and_version_exit_0(bandwatch: Command) -> None:
    assert bandwatch("--help").code == 0
    assert bandwatch("check", "-h").code == 0
    assert re.match(r"bandwatch \d+\.\d+", bandwatch("--version").out)
    assert "Exit codes: 0 no regression, 1 regression" in " ".join(bandwatch("--help").out.split())


def test_the_help_tells_of_each_command_what_the_command_says(bandwatch: Command) -> None:
    modules = {module.name for module in iter_modules(tracker.cli.__path__)}
    loaded = {name: import_module(f"tracker.cli.{name}") for name in sorted(modules - {"main"})}
    said = {
        name.rstrip("_"): module.command.short_help
        for name, module in loaded.items()
        if isinstance(getattr(module, "command", None), click.Command)
    }
    assert said == dict(COMMANDS)
    lines = [" ".join(line.split()) for line in bandwatch("--help").out.splitlines()]
    assert all(f"{name} {told}" in lines for name, told in COMMANDS.items())


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], {"sqlalchemy", "numpy", "rich"}),
        (["--help"], {"sqlalchemy", "numpy", "rich"}),
        (["list"], {"sqlalchemy.orm", "scipy", "alembic"}),
        (["history", "relu"], {"sqlalchemy.orm", "scipy", "alembic"}),
        (["show", "relu"], {"sqlalchemy.orm", "scipy.stats", "alembic", "pandas"}),
        (["check"], {"sqlalchemy.orm", "scipy.stats", "alembic", "pandas"}),
        (["compare", "latest"], {"sqlalchemy.orm", "scipy.stats", "alembic", "pandas"}),
    ],
)
def test_a_command_loads_only_what_it_needs(arguments: list[str], unwanted: set[str]) -> None:
    code = f"""
import sys
from tracker.cli.main import main
main({arguments!r})
print(*sorted({unwanted!r} & set(sys.modules)), file=sys.stderr)
"""
    assert errors_of(code) == "\n"


def test_what_a_command_starts_may_use_all_processors(
    bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "OPENBLAS_NUM_THREADS"
    monkeypatch.delenv(variable, raising=False)
    bandwatch("list", "--help")
    assert variable not in os.environ
    monkeypatch.setenv(variable, "3")
    bandwatch("list", "--help")
    assert os.environ[variable] == "3"


def test_a_command_inside_another_program_leaves_its_collector_as_it_was(
    bandwatch: Command,
) -> None:
    before = gc.isenabled(), gc.get_freeze_count()
    assert before[0]
    bandwatch("list", "--help")
    assert (gc.isenabled(), gc.get_freeze_count()) == before


def test_a_process_of_its_own_collects_while_a_command_runs() -> None:
    code = """import atexit, gc, sys
from tracker.cli.main import main
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000, file=sys.stderr))
sys.argv = ["bandwatch", "list", "--help"]
main()
"""
    assert errors_of(code) == "True True\n"


def test_a_reader_that_stops_early_does_not_change_the_exit_code(filled: Path) -> None:
    command = [sys.executable, "-m", "tracker.cli.main", "check"]
    script = f"set -o pipefail; {shlex.join(command)} 2>err | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=filled,
        env={"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"
    assert (filled / "err").read_text() == ""


@pytest.mark.parametrize(
    "command", ["list --limit", "history relu --limit", "db prune --older-than 1 --keep-runs"]
)
def test_a_number_that_no_database_takes_is_wrong_use(
    filled: Path, bandwatch: Command, command: str
) -> None:
    del filled
    answer = bandwatch(*command.split(), "9" * 30)
    assert answer.code == 2
    assert "1000000000" in answer.err


@pytest.mark.parametrize("command", ["list", "check", "db info", "export --format jsonl"])
def test_a_full_disk_under_standard_output_is_one_line(filled: Path, command: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tracker", *command.split()],
            cwd=filled,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == ("bandwatch: cannot write to standard output: No space left on device\n")


@pytest.mark.usefixtures("project")
def test_a_traceback_does_not_tell_a_password(
    bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "postgresql://ada:hunter2@127.0.0.1:1/x?password=hunter3"

    def broken(*_: object, **__: object) -> None:
        raise ValueError(f"cannot reach {address}")

    monkeypatch.setattr("tracker.store.Store.open", broken)
    answer = bandwatch("--debug", "list", "--store", address)
    assert answer.code == 5
    assert "Traceback" in answer.err
    assert "ValueError" in answer.err
    assert "hunter" not in answer.err


def test_main_takes_the_process_s_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bandwatch", "--version"])
    assert main() == 0
