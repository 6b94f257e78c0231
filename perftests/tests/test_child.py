"""A child pytest sees the project as its parent does: configuration, plugins, options, device, time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from perftests import child, fresh, nsight
from perftests.harness.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]
CONFTEST = """
import pytest

def pytest_addoption(parser, pluginmanager):
    group = parser.getgroup("mine")
    group.addoption("--size", action="store", type=int, default=1)
    group.addoption("--tag", action="append")
    parser.addoption("--fast", action="store_true")
    parser.addoption("--sizes", nargs="+", type=int)
    parser.addini("mine", "a setting")
"""


@pytest.fixture
def words(pytester: pytest.Pytester) -> Callable[..., list[str]]:
    """Return the child's arguments of a session that is given some flags."""

    def words(*flags: str) -> list[str]:
        config = pytester.parseconfigure("-p", "perftests.plugin", *flags)
        return child.arguments(config, ["test_a.py::test[a/b::c]"], Path("cache"))

    return words


def holds(words: list[str], *wanted: str) -> bool:
    """Return whether the words stand in there in this order, one after the other."""
    size = len(wanted)
    return any(tuple(words[at : at + size]) == wanted for at in range(len(words) - size + 1))


def test_configuration_and_plugins_are_carried(
    pytester: pytest.Pytester, words: Callable[..., list[str]]
) -> None:
    other = pytester.path / "other"
    other.mkdir()
    ini = other / "elsewhere.ini"
    ini.write_text("[pytest]\n")
    pytester.makepyfile(mine="")
    pytester.syspathinsert()
    flags = ("-p", "mine", "-o", "log_level=ERROR", "-W", "error", "--import-mode=importlib")
    found = words("-c", str(ini), f"--rootdir={pytester.path}", *flags)
    assert holds(found, "-c", str(ini))
    assert f"--rootdir={pytester.path}" in found
    assert holds(found, "-p", "mine")
    assert holds(found, "-o", "log_level=ERROR")
    assert holds(found, "-W", "error")
    assert "--import-mode=importlib" in found
    assert f"{pytester.path}/test_a.py::test[a/b::c]" in found


def test_options_of_the_projects_own_are_carried_and_others_not(
    pytester: pytest.Pytester,
    words: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytester.makeconftest(CONFTEST)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--tag=env --maxfail=1")
    other = ("-k", "fast", "--junitxml=a.xml", "-x", "--fast", "test_a.py")
    found = words("--size", "-3", "--tag=x=y", "--sizes", "1", "2", *other)
    assert holds(found, "--tag=env", "--size", "-3", "--tag=x=y", "--sizes", "1", "2", "--fast")
    assert not {"-k", "fast", "--junitxml=a.xml", "-x", "--maxfail=1", "test_a.py"} & set(found)


def test_a_hook_that_asks_more_of_its_parser_costs_its_own_options_alone(
    pytester: pytest.Pytester, words: Callable[..., list[str]]
) -> None:
    pytester.makeconftest(CONFTEST + "    parser.parse_known_args([])\n")
    assert holds(words("--size=3"), "--size=3", "-q")


def test_a_child_is_nobodys_worker(
    words: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.setenv("MINE", "1")
    found = child.environment()
    assert found["MINE"] == "1"
    assert not any(name.startswith("PYTEST_XDIST") for name in found)
    assert "-n0" in words()


@pytest.mark.parametrize(
    ("asked", "worker", "gpus", "given"),
    [
        ("auto", "gw1", 2, "cuda:1"),
        ("cuda", "gw3", 2, "cuda:1"),
        ("auto", "", 2, "cuda:0"),
        ("cuda:1", "gw0", 2, "cuda:1"),
        ("cpu", "gw1", 2, "cpu"),
        ("auto", "gw1", 0, "auto"),
        ("cuda", "gw1", 0, "cuda"),
    ],
)
def test_it_measures_on_its_parents_device(
    asked: str,
    worker: str,
    gpus: int,
    given: str,
    words: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert f"--bandwatch-device={given}" in words(f"--bandwatch-device={asked}")


def test_a_profiled_child_is_marked_and_times_nothing(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfigure(
        "-p", "perftests.plugin", "--bandwatch-device=cpu", "--bandwatch-mode=hot"
    )
    found = nsight.arguments(config, "test_a.py::test_b", Path("cache"))
    assert {"--bandwatch-profile", "--bandwatch-timing=off", "--bandwatch-mode=hot"} <= {*found}
    assert f"{pytester.path}/test_a.py::test_b" in found


def test_the_fresh_process_gets_the_time_that_is_left(pytester: pytest.Pytester) -> None:
    items = pytester.getitems(
        "def test_a(gpu_benchmark): pass\n"
        "def test_b(gpu_benchmark): pass\n"
        "def test_of_something_else(): pass\n"
    )
    budget = Budget(10.0, 4)
    budget.spent(2.0)
    budget.spent(4.0)
    assert fresh._part(budget, items) == 4.0
    assert budget.sample_s() == 10.0 / 8  # all is given away: the least that a case gets
    assert fresh._part(budget, items[2:]) is None
    assert fresh._part(None, items) is None


def test_the_fresh_process_runs_in_the_project_of_its_parent(pytester: pytest.Pytester) -> None:
    """Its conftest's option, a plugin of -p, a setting of -c; and not addopts that would stop it."""
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".ini", elsewhere="[pytest]\nmine = 7\naddopts = -n 2 --lf -x\n")
    pytester.makepyfile(
        sees="""
import os, pytest

@pytest.fixture
def seen(request):
    option = request.config.getoption
    found = [option("--size"), request.config.getini("mine"), option("--bandwatch-budget")]
    return [os.getcwd() != str(request.config.rootpath), *found]
"""
    )
    pytester.makepyfile(
        test_a="""
import json
from perftests.lost import LOST

def test_fails():
    assert 0

def test_loses(request):
    request.config.stash[LOST] = request.node.nodeid

def test_fails_there():
    assert 0

def test_after(seen, gpu_benchmark):
    with open("seen.json", "w") as file:
        json.dump(seen, file)
"""
    )
    pytester.syspathinsert()
    started = pytester.mkdir("started")
    result = pytester.run(
        *(sys.executable, "-c", _IN.format(folder=started)),
        *("-c", "../elsewhere.ini", "--rootdir=..", "-p", "sees", "--size=3", "-n0"),
        *("-p", "perftests.plugin", "--maxfail=0", "--bandwatch-device=cpu", ".."),
        *("--bandwatch-timing=on", "--bandwatch-budget=9"),
    )
    result.assert_outcomes(passed=2, failed=2)
    assert json.loads((started / "seen.json").read_text()) == [True, 3, "7", 9.0]


_IN = """
import os, sys, pytest
os.chdir("{folder}")
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_more_tests_than_the_system_takes_as_words_are_named_in_a_file(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    config = pytester.parseconfigure("-p", "perftests.plugin")
    many = [f"test_a.py::test[{number:060d}]" for number in range(30_000)]
    found = child.arguments(config, many, tmp_path)
    (named,) = [word for word in found if word.startswith("@")]
    tests = Path(named[1:]).read_text(encoding="utf-8").splitlines()
    assert [test.split("::")[1] for test in tests] == [test.split("::")[1] for test in many]
    assert sum(map(len, found)) < 10_000
