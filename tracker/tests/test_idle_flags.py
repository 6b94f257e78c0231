"""Flags of `pytest --benchmark` where they would have no effect: refused, told, or left to others."""

import pytest

from tracker.pytest_plugin import _measuring_flags
from tracker.tests.sandbox import Sandbox, alone, envelope

pytest_plugins = ("pytester",)
STORE = "--bandwatch-store=sqlite:///flag.db"


@pytest.fixture
def sandbox(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    made = alone(pytester, monkeypatch, columns=140)
    made.records(relu=envelope(), add=envelope("add"))
    return made


def text(result: pytest.RunResult) -> str:
    return str(result.stdout)


@pytest.mark.parametrize(
    "flags", [(STORE,), ("--bandwatch-store", "sqlite:///flag.db"), ("--benchmark-base",)]
)
def test_what_is_said_of_recording_without_it_is_wrong_use(
    sandbox: Sandbox, flags: tuple[str, ...]
) -> None:
    result = sandbox.run(*flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = flags[0].partition("=")[0]
    (line,) = [line for line in result.errlines if line]
    assert line.startswith(f"ERROR: {name} says w")
    assert line.endswith(": give both")


@pytest.mark.parametrize("flag", ["--help", "--collect-only"])
def test_a_session_that_runs_nothing_refuses_nothing(sandbox: Sandbox, flag: str) -> None:
    result = sandbox.run(flag, STORE, "--benchmark-base", "--bandwatch-energy")
    assert result.ret == 0
    assert "test_case" in text(result) or "--bandwatch-store=URL" in text(result)


@pytest.mark.parametrize("where", ["addopts", "PYTEST_ADDOPTS"])
def test_it_may_stand_in_the_settings_of_sessions_that_record_nothing(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    flags = f"{STORE} --benchmark-base"
    if where == "addopts":
        with (sandbox.folder / "pyproject.toml").open("a") as file:
            file.write(f"\n[tool.pytest.ini_options]\naddopts = '{flags}'\n")
    else:
        monkeypatch.setenv(where, flags)
    assert sandbox.run("-W", "error").ret == 0
    assert not (sandbox.folder / "flag.db").exists()
    result = sandbox.run("--benchmark")
    assert "--benchmark-base: " in text(result)
    assert (sandbox.folder / "flag.db").is_file()


@pytest.mark.filterwarnings("ignore:Not saving anything")
def test_what_was_measured_and_not_recorded_is_told_in_a_line(sandbox: Sandbox) -> None:
    told = "bandwatch: 2 results were measured and not recorded; that takes --benchmark"
    assert text(sandbox.run("-q")).count(told) == 1
    assert "bandwatch: 1 result was measured" in text(sandbox.run("-k", "relu"))
    for flags in (["--benchmark"], ["--benchmark-json=kept.json"], ["--collect-only"]):
        assert "not recorded" not in text(sandbox.run(*flags))


def test_nothing_is_told_where_nothing_was_measured(sandbox: Sandbox) -> None:
    record = envelope()
    record["result"] |= {"measurements_s": [], "summary": None}
    sandbox.records(relu=record)
    assert "not recorded" not in text(sandbox.run())


def test_a_session_of_several_processes_tells_it_once(sandbox: Sandbox) -> None:
    pytest.importorskip("xdist")
    result = sandbox.run("-n", "2", subprocess=True)
    assert text(result).count("2 results were measured and not recorded") == 1


@pytest.mark.parametrize(
    "of_ours",
    [
        ("-p", "bandwatch_inside"),
        ("--bandwatch-reports=reports.jsonl",),
        ("--bandwatch-profile", "--bandwatch-timing=off"),
    ],
)
@pytest.mark.parametrize("flags", [("--benchmark", STORE), (STORE, "--benchmark-base")])
def test_a_session_that_we_start_neither_records_nor_fails_nor_tells(
    sandbox: Sandbox, of_ours: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    """Whoever started it takes what it measures, whichever flags its user has."""
    sandbox.pytester.makepyfile(bandwatch_inside="")
    sandbox.pytester.syspathinsert()
    result = sandbox.run(*of_ours, *flags)
    assert result.ret == 0
    assert "bandwatch" not in text(result).partition("collected")[2]
    assert not (sandbox.folder / "flag.db").exists()


def test_how_the_table_of_pytest_benchmark_looks_is_no_idle_flag(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # pytest-benchmark times in none
    sandbox.pytester.makepyfile(test_other="def test_sum(benchmark): benchmark(sum, [1, 2])")
    assert "Name (time in" not in text(sandbox.run("--benchmark", "test_other.py"))
    shown = sandbox.run("--benchmark", "--benchmark-columns=median", "test_other.py")
    assert "Name (time in" in text(shown)


def test_a_switch_takes_no_word_after_it_to_the_measuring_of_a_base(
    pytester: pytest.Pytester,
) -> None:
    given = ("--bandwatch-energy", "-k", "relu", "--bandwatch-mode", "hot", "--bandwatch-ncu", "x")
    config = pytester.parseconfig("--benchmark", *given, STORE, "--bandwatch-budget=3")
    wanted = ["--bandwatch-energy", "--bandwatch-mode", "hot", "--bandwatch-ncu"]
    assert list(_measuring_flags(config)) == [*wanted, "--bandwatch-budget=3"]
