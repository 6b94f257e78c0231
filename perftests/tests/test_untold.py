"""What a test's CUDA calls returned and nobody looked at is told of that test, and then gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from perftests import untold
from perftests.tests.fake_runtime import Runtime
from perftests.untold import loaded_runtimes, untold_by

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]
FAST = (
    *("--bandwatch-device=cpu", "-p", "perftests.plugin", "-p", "no:cacheprovider"),
    *("-p", "no:tracker.pytest_plugin", "-q"),
)
LEAVES = """
from perftests import untold
from perftests.tests.fake_runtime import Runtime

runtime = Runtime()
untold.loaded_runtimes = lambda: [runtime]

def test_leaves_an_error():
    runtime.kept = 9

def test_is_not_blamed():
    assert runtime.kept == 0
"""
MEASURES = """
def test_measures(gpu_benchmark):
    pass
"""


def test_kept_errors_are_named_and_cleared() -> None:
    two = [Runtime(9), Runtime(), Runtime(98)]
    told = untold_by(two)
    assert told is not None
    assert "nothing told so: cudaErrorInvalidConfiguration (9), CUDA error (98); check" in told
    assert untold_by(two) is None


@pytest.mark.parametrize("code", [0, 600])
def test_success_and_a_query_that_came_early_are_no_errors(code: int) -> None:
    assert untold_by([Runtime(code)]) is None
    assert untold_by([]) is None


def test_runtimes_are_those_that_are_loaded_and_none_without_a_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = tmp_path / "maps"
    line = "7f00-7f01 r-xp 00000000 08:01 42   "
    paths = ["/lib/libcudart.so.13", "/lib/libc.so.6", "/lib/libcudart.so.13", "/x/libcudart-a.so"]
    paths += ["/gone/libcudart.so.12 (deleted)", "/a b/libcudart.so.12", "/libcudart-13/lib/x.so"]
    lines = [f"{line}{path}\n".encode() for path in paths] + [line.encode() + b"/\xff\n"]
    maps.write_bytes(b"".join(lines))

    def load(path: str, *, mode: int) -> str:
        assert mode & os.RTLD_NOLOAD
        if path == "/gone/libcudart.so.12":
            raise OSError
        return path

    monkeypatch.setattr(untold, "_load", load)
    monkeypatch.setattr(untold, "loaded_driver", lambda: None)
    assert loaded_runtimes(maps) == []
    monkeypatch.setattr(untold, "loaded_driver", lambda: "driver")
    found = ["/a b/libcudart.so.12", "/lib/libcudart.so.13", "/x/libcudart-a.so"]
    assert loaded_runtimes(maps) == found
    assert loaded_runtimes(tmp_path / "absent") == []


def test_the_test_that_left_an_error_is_warned_of_and_the_next_one_is_well(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=LEAVES + MEASURES)
    result = pytester.runpytest_subprocess(*FAST)
    result.assert_outcomes(passed=3, warnings=1)
    result.stdout.fnmatch_lines(
        ["test_it.py::test_leaves_an_error", "*cudaErrorInvalidConfiguration (9)*"]
    )


def test_a_test_whose_teardown_fails_leaves_nothing_to_the_next_one(
    pytester: pytest.Pytester,
) -> None:
    fails = """
import pytest

@pytest.fixture
def failing():
    yield
    raise OSError
"""
    leaves = LEAVES.replace("leaves_an_error()", "leaves_an_error(failing)")
    pytester.makepyfile(test_it=fails + leaves + MEASURES)
    pytester.runpytest_subprocess(*FAST).assert_outcomes(passed=3, errors=1, warnings=1)


def test_a_runtime_that_a_later_test_loads_is_asked_too(pytester: pytest.Pytester) -> None:
    loads = """
import sys
from types import ModuleType

def test_loads_nothing():
    pass

def test_loads_another():
    sys.modules["another"] = ModuleType("another")
    other = Runtime(9)
    untold.loaded_runtimes = lambda: [runtime, other]
"""
    pytester.makepyfile(test_it=LEAVES.replace("kept = 9", "kept = 0") + loads + MEASURES)
    result = pytester.runpytest_subprocess(*FAST)
    result.assert_outcomes(passed=5, warnings=1)
    result.stdout.fnmatch_lines(["test_it.py::test_loads_another"])


def test_where_warnings_are_errors_it_is_one_of_the_test_that_left_it(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=LEAVES + MEASURES)
    result = pytester.runpytest_subprocess(*FAST, "-W", "error::pytest.PytestWarning", "-ra")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["ERROR test_it.py::test_leaves_an_error*"])


def test_a_session_that_measures_nothing_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=LEAVES.replace("kept == 0", "kept == 9"))
    pytester.runpytest_subprocess(*FAST).assert_outcomes(passed=2)
