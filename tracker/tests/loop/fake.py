"""A repository whose commits have a known speed, and a measuring step that believes it."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tracker.loop.fresh import Measured, Task
from tracker.loop.worktrees import BuildError
from tracker.model import Case
from tracker.record import Envelope
from tracker.tests.sides import BOARD, H200, make_result

SPEEDS = "speeds.json"
RELU = "perftests/test_relu.py::test_relu[cuda_vector]"
ADD = "perftests/test_add.py::test_add[cuda_vector]"
CASES = {
    RELU: Case("relu", "cuda_vector", "float32", (1 << 24,)),
    ADD: Case("add", "cuda_vector", "float32", (1 << 24,)),
}
MOVED = 2 * 4 << 24
USUAL_S = MOVED / 3.6e12


def git(root: Path, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(root: Path, message: str, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")


def repository(root: Path, speeds: Sequence[Mapping[str, float | str]]) -> list[str]:
    """Make a repository with one commit for each entry: slowness by test, 1 is the usual time.

    A text instead of a number says why that commit cannot be built.
    """
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    shas = []
    for number, speed in enumerate(speeds):
        # The number makes each commit differ in time and content.
        files = {
            SPEEDS: json.dumps(speed),
            "number.txt": str(number),
            ".gitignore": ".bandwatch/\n",
        }
        shas.append(commit(root, f"Change {number}", files))
    return shas


@dataclass
class FakeMeasure:
    """Reads a commit's speeds from its worktree; noise between processes and within them is given.

    `cases` are by test, `names` the entries of the speeds by test where they differ from it.

    `calls` tells which tests were measured in which folder, with timing or without; `keywords` are
    the tests that a keyword selects, `failed` those that fail without a record, with the reason.
    """

    between: float = 0.0006
    within: float = 0.004
    drift: float = 0.0
    seed: int = 1
    fail: Callable[[int], None] = lambda number: None
    cases: Mapping[str, Case] = field(default_factory=lambda: CASES)
    names: Mapping[str, str] = field(default_factory=dict)
    calls: list[tuple[str, tuple[str, ...] | None, bool]] = field(default_factory=list)
    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, folder: Path, task: Task, journal: Path) -> Measured:
        if task.keyword is not None:
            task = replace(task, tests=self.keywords[task.keyword])
        number = len(self.calls)
        self.calls.append((folder.name, task.tests, task.timing))
        self.fail(number)
        named = json.loads((folder / SPEEDS).read_text("utf-8"))
        tests = {self.names.get(test, test): test for test in self.cases}
        speeds = {tests.get(name, name): speed for name, speed in named.items()}
        broken = [text for text in speeds.values() if isinstance(text, str)]
        if broken:
            raise BuildError(f"cannot build {folder.name}: {broken[0]}")
        wanted = [
            test
            for test in self.cases
            if test in speeds and (task.tests is None or test in task.tests)
        ]
        absent = tuple(test for test in task.tests or () if test not in speeds)
        if not task.timing:
            return Measured(absent=absent, failed=self.failed)
        good = [test for test in wanted if test not in self.failed]
        return Measured(
            tuple(self._envelope(test, speeds[test], number) for test in good),
            absent,
            self.failed,
        )

    def _envelope(self, test: str, slowness: float, number: int) -> Envelope:
        rng = np.random.default_rng([self.seed, number, list(self.cases).index(test)])
        level = (
            USUAL_S
            * slowness
            * (1 + self.drift * number)
            * np.exp(self.between * rng.standard_normal())
        )
        result = make_result(
            case=self.cases[test],
            center_s=float(level),
            spread=self.within,
            seed=int(rng.integers(1 << 30)),
            bytes_moved=MOVED,
        )
        reasons = {"correctness": "a stand-in computes nothing"}
        return Envelope(H200, BOARD, replace(result, test=test, reasons=reasons))


@dataclass
class Clock:
    """A clock that moves when it is read."""

    step_s: float = 1.0
    now_s: float = 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s
