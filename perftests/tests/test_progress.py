"""Progress: one moving line below the dots of a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import pytest

from perftests import progress
from perftests.harness.allocations import cpu_allocation
from perftests.progress import LineBelow, Progress

pytest_plugins = ["pytester"]
CASES = [f"perftests/test_relu.py::test_relu[{k}]" for k in range(4)]


@pytest.fixture(scope="module", autouse=True)
def _torch_is_imported() -> None:
    """Import what an inner run needs: its own imports are undone, torch's cannot be."""
    cpu_allocation(lambda: None)


@dataclass
class Screen:
    """Keeps what is written."""

    isatty: bool = True
    lines: list[str] = field(default_factory=list)

    def ensure_newline(self) -> None:
        self.lines.append("\n")

    def write_line(self, line: str | bytes, **_: bool) -> None:
        self.lines.append(str(line))


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def followed(below: LineBelow | None, *, step_s: float) -> list[str]:
    """Four cases are done; return the lines that pytest's reporter wrote."""
    screen, clock = Screen(), Clock()
    told = Progress(screen, below, clock)
    told.expect(CASES)
    for case in CASES:
        clock.now += step_s
        told.finished(case)
        told.finished("another test")
        told.show()
    return screen.lines


def test_a_terminal_sees_one_line_that_moves_with_the_time_left() -> None:
    stream = io.StringIO()
    assert followed(LineBelow(stream), step_s=10) == []
    shown = stream.getvalue().split("\x1b8")
    assert shown[0].endswith("bandwatch: 1 of 4, about 30 s left, done test_relu[0]")
    assert shown[2].endswith("bandwatch: 3 of 4, about 10 s left, done test_relu[2]")
    assert shown[3] == ""  # all are done: the summary says the rest


def test_elsewhere_a_plain_line_comes_every_quarter_of_a_minute() -> None:
    lines = followed(None, step_s=10)
    assert [line for line in lines if line != "\n"] == [
        "bandwatch: 2 of 4, about 20 s left, done test_relu[1]",
        "bandwatch: 4 of 4, about 0 s left, done test_relu[3]",
    ]
    assert followed(None, step_s=1) == []


def test_a_name_cannot_move_the_cursor() -> None:
    stream = io.StringIO()
    told = Progress(Screen(), LineBelow(stream), Clock())
    told.expect(["a.py::test[\x1b[2J\u202e\u6f22]", "a.py::test_b"])
    told.finished("a.py::test[\x1b[2J\u202e\u6f22]")
    told.show()
    assert r"done test[\x1b[2J\u202e\u6f22]" in stream.getvalue()


def test_a_timing_session_tells_and_a_check_does_not(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    pytester.makepyfile(
        "from perftests.tests.workloads import relu_workload\n"
        "def test_good(gpu_benchmark):\n"
        "    gpu_benchmark(relu_workload())\n"
        "def test_other():\n"
        "    pass\n"
    )
    fast = ("--bandwatch-device=cpu", "-p", "no:cacheprovider")
    told = pytester.runpytest(*fast, "--bandwatch-max-samples=8", "--bandwatch-timing=on")
    told.stdout.fnmatch_lines(["bandwatch: 1 of 1, about 0 s left, done test_good"])
    silent = pytester.runpytest(*fast)
    silent.stdout.no_fnmatch_line("bandwatch: 1 of 1*")
