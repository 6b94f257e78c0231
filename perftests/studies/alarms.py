"""False alarms and planted losses on the real device: fresh processes of the suite, a commit each.

    python -m perftests.studies.alarms --store sqlite:////tmp/alarms.db --work /tmp/alarms

First the unchanged suite again and again (A/A), each run of an empty commit of its own upon the one
before, recorded and judged as a user's run is; then runs with planted losses (see `planted`), each
of a commit upon the last unchanged one. The commits are made in a clone in `--work`. Called again
with the same folder, it goes on where it stopped. The tables come from the store:

    python -m tracker.evaluate.alarms sqlite:////tmp/alarms.db --out docs/results
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

LOSSES = (0.01, 0.02, 0.05)
SUITE = ("perftests", "--ignore=perftests/tests", "--ignore=perftests/scale")
_PLUGINS = ("-p", "no:cacheprovider", "-p", "perftests.plugin", "-p", "tracker.pytest_plugin")
_PERSON = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "alarms study"), ("EMAIL", "alarms@localhost"))
}
_LATE_S = 90.0
"""What one run may take at most."""
_SHARE = 0.75
"""How long a run with a planted loss takes beside a whole one, before one was seen."""


@dataclass(frozen=True)
class Plan:
    """What is asked for.

    `seconds` bounds everything; unchanged runs leave time for one run of each loss. `more` are
    further arguments of pytest, such as a selection.
    """

    store: str
    work: Path
    runs: int = 20
    rounds: int = 3
    losses: tuple[float, ...] = LOSSES
    least_mib: float = 64.0
    seconds: float = 540.0
    more: tuple[str, ...] = ()


@dataclass
class Clock:
    """How much time is left, and how long runs of a kind have taken."""

    seconds: float
    started: float = field(default_factory=monotonic)
    taken: dict[str, float] = field(default_factory=dict)

    def left(self) -> float:
        """Return the seconds left."""
        return self.seconds - (monotonic() - self.started)

    def allows(self, kind: str, times: int = 1) -> bool:
        """Return whether so many more runs of a kind fit, as far as is known."""
        whole = self.taken.get("unchanged", 0.0)
        return self.left() > times * self.taken.get(kind, _SHARE * whole)


def measure(plan: Plan) -> None:
    """Measure what the folder has not yet, until the time is used up."""
    clock = Clock(plan.seconds)
    _clone(plan.work)
    done = _done(plan.work)
    for number in range(1, plan.runs + 1):
        subject = f"Unchanged, run {number}"
        if subject in done:
            continue
        if not clock.allows("unchanged") or not clock.allows("planted", len(plan.losses)):
            print(f"no time for {subject.lower()}: {clock.left():.0f} s are left")
            break
        _run(plan, clock, "unchanged", subject, ())
    for turn in range(1, plan.rounds + 1):
        for loss in plan.losses:
            subject = f"Planted loss of {loss:.2%}, run {turn}"
            if subject in done:
                continue
            if not clock.allows("planted"):
                print(f"no time for {subject.lower()}: {clock.left():.0f} s are left")
                return
            _run(plan, clock, "planted", subject, _planting(plan, loss))


def _planting(plan: Plan, loss: float) -> tuple[str, ...]:
    plugin = ("-p", "perftests.studies.planted")
    return (*plugin, f"--planted-loss={loss}", f"--planted-least-mib={plan.least_mib:g}")


def _clone(work: Path) -> None:
    if not (work / ".git").exists():
        subprocess.run(["git", "clone", "-q", "--no-tags", ".", str(work)], check=True)
    _git(work, "checkout", "-q", "-B", "unchanged")


def _done(work: Path) -> frozenset[str]:
    """Return the subjects of the runs that were made: each commit has its run or was given up."""
    return frozenset(_git(work, "log", "--all", "--format=%s").splitlines())


def _run(plan: Plan, clock: Clock, kind: str, subject: str, flags: tuple[str, ...]) -> None:
    """Make a commit, measure it in a fresh process, and take a planted one away again."""
    work = plan.work
    if kind == "planted":
        branch = re.sub(r"[^a-z0-9]+", "-", subject.lower())
        _git(work, "checkout", "-q", "-B", branch, "unchanged")
    _git(work, "commit", "-q", "--allow-empty", "-m", subject)
    start = monotonic()
    code, said = _pytest(plan, flags)
    taken = monotonic() - start
    clock.taken[kind] = max(taken, clock.taken.get(kind, 0.0))
    print(f"{subject}: exit {code} in {taken:.1f} s; {said}", flush=True)
    if kind == "planted":
        _git(work, "checkout", "-q", "unchanged")


def _pytest(plan: Plan, flags: tuple[str, ...]) -> tuple[int | str, str]:
    """Run the suite in a fresh process in the clone; return its status and what it said last."""
    command = [sys.executable, "-m", "pytest", "-q", *_PLUGINS, "--benchmark", "--bandwatch-quick"]
    here = os.environ | {"BANDWATCH_STORE": plan.store}
    here["PYTHONPATH"] = os.pathsep.join(filter(None, (str(plan.work), here.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            [*command, *flags, *SUITE, *plan.more],
            cwd=plan.work,
            env=here,
            capture_output=True,
            text=True,
            timeout=_LATE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "late", f"stopped after {_LATE_S:.0f} s"
    told = [line for line in done.stdout.splitlines() if re.search(r"\d cases: exit", line)]
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    return done.returncode, "; ".join([*(line.strip("* ") for line in told), *last])


def _git(work: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=work,
        env=os.environ | _PERSON,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def plan_from_arguments() -> Plan:
    """Return the plan that a command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m perftests.studies.alarms", description="Measure A/A runs and planted losses"
    )
    add = parser.add_argument
    add("--store", required=True, help="URL of the store that takes the runs")
    add("--work", type=Path, required=True, help="folder of the clone that the runs are made in")
    add("--runs", type=int, default=20, help="unchanged runs (default: %(default)s)")
    add("--rounds", type=int, default=3, help="runs of each loss (default: %(default)s)")
    add("--losses", type=float, nargs="*", default=LOSSES, help="shares (default: %(default)s)")
    add("--least-mib", type=float, default=64.0, help="of a planted case (default: %(default)s)")
    add("--seconds", type=float, default=540.0, help="time for everything (default: %(default)s)")
    add("more", nargs="*", help="further arguments of pytest, after --")
    given = vars(parser.parse_args())
    return Plan(**given | {"losses": tuple(given["losses"]), "more": tuple(given["more"])})


if __name__ == "__main__":
    measure(plan_from_arguments())
