"""The loop around a pull request, played on this project's own history with a planted slow-down.

    python -m tracker.demo.rehearse OUT [--plant hints|twice] [-k EXPR] [--seconds S]

Run in a clone with history. Commits of the past are put on a branch again; one more among them
makes relu/cuda_vector slower under an innocent name. Then the commands of CI run as a workflow has
them: `ci` on main, `ci` on the pull request, the judging job on main's code, `bisect`, `backfill`,
`history`, and `ci` on main once more. OUT gets transcript.md, facts.json, the store and a folder
for each report.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tracker.errors import TrackerError
from tracker.loop.repository import Repository, outside_hooks

GOOD = "5a587b50dd"
REPLAYED = ("a705695", "2cffd68", "4ac995d", "ef3247f", "f4470c3", "360fde3", "05cceb8")
_BEFORE_PLANT = 4
_KERNEL = "kernels/relu"
_AUTHOR = ("-c", "user.name=A. Person", "-c", "user.email=person@example.org")
_HINTS = """\
// Data that is used once goes around the cache.
#define LOAD_HINT(pointer) __ldcs(pointer)
#define STORE_HINT(pointer, value) __stcs(pointer, value)
#include "elementwise.cuh"
"""
_TWICE = """\
class _Vector(CudaVector):
    def __call__(self, *inputs, out=None, **parameters):
        super().__call__(*inputs, out=out, **parameters)
        return super().__call__(*inputs, out=out, **parameters)


IMPLEMENTATIONS:"""
# File, what stands there, what takes its place.
PLANTS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "hints": (("cuda.cu", '#include "elementwise.cuh"\n', _HINTS),),
    "twice": (
        ("__init__.py", "IMPLEMENTATIONS:", _TWICE),
        ("__init__.py", "CudaVector(DEFINITION", "_Vector(DEFINITION"),
    ),
}
SUBJECT = "Read and write relu with streaming hints"
BRANCH = "tidy-and-tune"
# Seconds that a step should find; below that it is left out.
_LEAST_S = {"bisect": 45.0, "backfill": 30.0, "again": 40.0}


@dataclass
class Stage:
    """The clone in which it is played, and the transcript of it."""

    team: Path
    out: Path
    deadline: float
    facts: dict[str, object] = field(default_factory=dict)

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.deadline - time.monotonic()

    def say(self, text: str) -> None:
        """Add text to the transcript, and show it."""
        print(text, flush=True)
        with (self.out / "transcript.md").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def run(self, name: str, *words: str, extra: Mapping[str, str] | None = None) -> None:
        """Run one command of Bandwatch in the clone, into the transcript."""
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tracker", *words],
            cwd=self.team,
            env=_environment() | dict(extra or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        seconds = time.monotonic() - started
        shown = done.stdout.replace(str(self.out), "OUT").replace(str(self.team), "team")
        command = shlex.join(["bandwatch", *words]).replace(str(self.out), "OUT")
        self.say(f"```console\n$ {command}\n{shown.rstrip()}\n```\n")
        self.say(f"Exit code {done.returncode}, after {seconds:.0f} s.\n")
        self.facts[name] = {"exit": done.returncode, "seconds": round(seconds, 1)}

    def read(self, *words: str) -> dict[str, Any]:
        """Return the report of a command as data; what it measured before it does not measure."""
        command = [sys.executable, "-P", "-m", "tracker", *words, "--format", "json"]
        done = subprocess.run(
            command, cwd=self.team, env=_environment(), capture_output=True, check=False
        )
        found = json.loads(done.stdout or b"{}")
        return found if isinstance(found, dict) else {}

    def close(self) -> None:
        """Keep the facts, and the store with what was measured."""
        text = json.dumps(self.facts, indent=2) + "\n"
        (self.out / "facts.json").write_text(text, "utf-8")
        store = self.team / ".bandwatch" / "bandwatch.db"
        if store.is_file():
            shutil.copyfile(store, self.out / "bandwatch.db")


def _environment() -> dict[str, str]:
    environment = outside_hooks(dict(os.environ))
    for name in ("BANDWATCH_STORE", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        environment.pop(name, None)
    # This tracker judges, whatever the checkout brings; measuring takes the checkout's own suite.
    here = str(Path(__file__).parents[2])
    path = [here, environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    if not any(entry.name == "perftests.plugin" for entry in entry_points(group="pytest11")):
        environment["PYTEST_PLUGINS"] = "perftests.plugin"
    return environment | {"COLUMNS": "120", "PYTHONUNBUFFERED": "1"}


def plant(folder: Path, kind: str) -> None:
    """Make relu/cuda_vector slower in a checkout."""
    for name, old, new in PLANTS[kind]:
        path = folder / _KERNEL / name
        text = path.read_text("utf-8")
        if old not in text:
            raise TrackerError(f"cannot plant in {path}: it has no {old!r}")
        path.write_text(text.replace(old, new, 1), "utf-8")


def prepare(stage: Stage, source: Path, kind: str) -> tuple[str, ...]:
    """Make the clone with main and the branch; return the branch's commits, oldest first."""
    Repository(source).run("clone", "--quiet", str(source), str(stage.team))
    team = Repository(stage.team)
    team.run("switch", "--quiet", "--force-create", "main", GOOD)
    team.run("switch", "--quiet", "--create", BRANCH)
    commits = []
    for number, sha in enumerate(REPLAYED):
        if number == _BEFORE_PLANT:
            plant(stage.team, kind)
            team.run(*_AUTHOR, "commit", "--quiet", "--all", "--message", SUBJECT)
            commits.append(team.resolve("HEAD"))
        team.run(*_AUTHOR, "cherry-pick", sha)
        commits.append(team.resolve("HEAD"))
    return tuple(commits)


def play(stage: Stage, commits: Sequence[str], keyword: str | None) -> None:
    """Run every command; what the time does not allow is left out, which the transcript says."""
    team, narrow = Repository(stage.team), ("-k", keyword) if keyword else ()
    culprit = commits[_BEFORE_PLANT]
    stage.facts |= {"good": team.resolve("main"), "planted": culprit, "commits": len(commits)}
    stage.say("The branch `tidy-and-tune`, oldest first:\n\n```text")
    stage.say(team.run("log", "--reverse", "--format=%h %s", f"main..{BRANCH}"))
    stage.say(f"```\n\nCommit {culprit[:7]} is the one that makes relu/cuda_vector slower.\n")
    stage.say("## Main is measured\n")
    team.run("switch", "--quiet", "main")
    stage.run("main", "ci", "--quick", *narrow, "--out", str(stage.out / "main"))
    stage.say("## The pull request is measured and judged, as a workflow does it\n")
    _pull_request(stage, team, narrow)
    worst = _worst(stage.out / "report" / "report.json")
    if worst is None:
        stage.say("Nothing became slower: there is nothing to look for.\n")
    else:
        stage.facts["case"] = worst
        _find(stage, team, worst)
        _fill(stage, commits, worst)
    _again(stage, team, narrow)


def _pull_request(stage: Stage, team: Repository, narrow: Sequence[str]) -> None:
    """Measure the commit that GitHub would make of both sides, then judge with main's code."""
    base, head = team.resolve("main"), team.resolve(BRANCH)
    team.run("switch", "--quiet", "--detach", "main")
    message = f"Merge {head} into {base}"
    team.run(*_AUTHOR, "merge", "--quiet", "--no-ff", "--message", message, BRANCH)
    event = stage.team.with_name("event.json")
    sides = {"head": {"sha": head, "ref": BRANCH}, "base": {"sha": base, "ref": "main"}}
    event.write_text(json.dumps({"action": "synchronize", "pull_request": sides}), "utf-8")
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_HEAD_REF": BRANCH,
        "GITHUB_SHA": team.resolve("HEAD"),
    }
    records, report = stage.out / "records", stage.out / "report"
    asked = ("--quick", "--ab", "--no-record", *narrow, "--format", "github")
    stage.run("measure", "ci", *asked, "--out", str(records), extra=variables)
    team.run("switch", "--quiet", "main")
    written = {
        "GITHUB_STEP_SUMMARY": str(stage.out / "step-summary.md"),
        "GITHUB_OUTPUT": str(stage.out / "step-output.txt"),
    }
    judged = ("ci", "--from", str(records), "--out", str(report), "--format", "github")
    stage.run("judge", *judged, extra=variables | written)


def _worst(report: Path) -> str | None:
    """Return the case with the largest loss, None where nothing became slower."""
    if not report.is_file():
        return None
    rows = json.loads(report.read_text("utf-8"))["tables"]["verdicts"]
    slower = [row for row in rows if row["outcome"] == "regression"]
    found = min(slower, key=lambda row: row["bandwidth_change"], default=None)
    return None if found is None else str(found["case"])


def _find(stage: Stage, team: Repository, case: str) -> None:
    if stage.left() < _LEAST_S["bisect"]:
        stage.say("No time was left to bisect.\n")
        return
    stage.say("## Which commit did it\n")
    team.run("switch", "--quiet", "main")
    budget = f"{max(30, round(stage.left() - _LEAST_S['backfill']))}s"
    words = ("bisect", *case.split(), "main", BRANCH, "--budget", budget)
    stage.run("bisect", *words)
    # Once more, as data: every reading is in the notebook, nothing is measured.
    done = stage.read("bisect", *case.split(), "main", BRANCH)
    stage.facts["found"] = done["facts"]


def _fill(stage: Stage, commits: Sequence[str], case: str) -> None:
    """Measure the two commits before the branch's last but one, and that one, into history."""
    if stage.left() < _LEAST_S["backfill"]:
        stage.say("No time was left to fill the history.\n")
        return
    stage.say("## The history around it is filled\n")
    old, new = commits[_BEFORE_PLANT - 2], commits[_BEFORE_PLANT + 1]
    kernel = case.partition("/")[0]
    words = ("backfill", f"{old[:10]}..{new[:10]}", "--quick")
    stage.run("backfill", *words, "-k", f"test_{kernel}.py and cuda_vector")
    stage.run("history", "history", *case.split())


def _again(stage: Stage, team: Repository, narrow: Sequence[str]) -> None:
    if stage.left() < _LEAST_S["again"]:
        stage.say("No time was left to measure main once more.\n")
        return
    stage.say("## Main once more: nothing changed, nobody is alarmed\n")
    team.run("switch", "--quiet", "main")
    stage.run("again", "ci", "--quick", *narrow, "--out", str(stage.out / "again"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 when the planted commit was not found."""
    parser = argparse.ArgumentParser(prog="python -m tracker.demo.rehearse", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--plant", choices=sorted(PLANTS), default="hints")
    parser.add_argument("-k", dest="keyword", help="measure only what pytest's -k selects")
    parser.add_argument("--seconds", type=float, default=290.0, help="leave out what takes longer")
    given = parser.parse_args(arguments)
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder) / "team", out, time.monotonic() + given.seconds)
        try:
            commits = prepare(stage, Path.cwd(), given.plant)
            play(stage, commits, given.keyword)
        except (TrackerError, OSError) as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            stage.close()
    found = stage.facts.get("found")
    return 0 if isinstance(found, dict) and found["culprit"] == stage.facts["planted"] else 1


if __name__ == "__main__":
    sys.exit(main())
