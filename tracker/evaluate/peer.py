"""Error rates and speed beside Apache Otava's, on the very same series in one run.

    python -m tracker.evaluate.peer --otava /path/to/an/environment/bin/python [--series N]

Otava needs an environment of its own, with `apache-otava` 0.8.0: its pins do not fit ours.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from tracker.evaluate.noises import NOISES, Noise
from tracker.evaluate.protocol import OLD, PAST, WITHIN, YOUNG, values
from tracker.evaluate.speed import LENGTHS, histories_s, series
from tracker.last_words import telling_line
from tracker.stats.level import Array
from tracker.stats.shift import scan

ROWS = ("Gaussian", "downward spikes", "AR(1) 0.5", "heavy tails, t(3)")
_DROPS = (0.02, 0.05)
# A change that Otava puts a few runs before the drop is the drop.
_SLACK = 3


@dataclass(frozen=True, slots=True)
class Otava:
    """An interpreter that has Apache Otava."""

    python: str

    def ask(self, **question: Any) -> Any:
        """Return its answer. Raises RuntimeError with its last words where there is none."""
        script = Path(__file__).with_name("otava_peer.py")
        done = subprocess.run(
            [self.python, str(script)],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = telling_line(done.stderr)
            raise RuntimeError(f"cannot ask Otava with {self.python}: {said}")
        return json.loads(done.stdout)

    def first_alarms(self, rows: Array, begin: int, place: int) -> list[int | None]:
        """Return after how many runs each row is first told to have changed."""
        found: list[int | None] = self.ask(
            ask="first_alarms", series=rows.tolist(), begin=begin, place=place
        )
        return found

    def seconds(self) -> dict[int, float]:
        """Return the seconds of a whole analysis by length of the series."""
        found = self.ask(ask="timed", series=[series(n).tolist() for n in LENGTHS])
        return dict(zip(LENGTHS, map(float, found), strict=True))


def our_first_alarms(rows: Array, begin: int, *, losses_only: bool) -> list[int | None]:
    """Return the same by the monitor's rule."""
    first: list[int | None] = [None] * len(rows)
    for runs in range(begin, rows.shape[1] + 1):
        loss, gain = scan(rows[:, :runs])
        for row in np.flatnonzero(loss if losses_only else loss | gain).tolist():
            first[row] = first[row] or runs
    return first


def per_100_runs(first: Sequence[int | None], begin: int, end: int) -> float:
    """Return alarms per 100 runs of clean series, each followed to its first."""
    tested = sum((alarm or end) - begin + 1 for alarm in first)
    return 100 * sum(alarm is not None for alarm in first) / tested


def share_found(first: Sequence[int | None]) -> float:
    """Return the share of series with an alarm."""
    return sum(alarm is not None for alarm in first) / len(first)


def row(name: str, noise: Noise, otava: Otava, rng: Generator, count: int) -> str:
    """Return one row of the table: false alarms and found drops, ours and Otava's."""
    clean = values(noise(rng, count, OLD))
    ours = per_100_runs(our_first_alarms(clean, YOUNG + 1, losses_only=False), YOUNG + 1, OLD)
    theirs = per_100_runs(otava.first_alarms(clean, YOUNG + 1, 0), YOUNG + 1, OLD)
    cells = [f"{ours:.3f} / {theirs:.2f}"]
    for drop in _DROPS:
        lost = values(noise(rng, count, PAST + WITHIN))
        lost[:, PAST:] *= 1 - drop
        mine = share_found(our_first_alarms(lost, PAST + 1, losses_only=True))
        his = share_found(otava.first_alarms(lost, PAST + 1, PAST - _SLACK))
        cells.append(f"{mine:.1%} / {his:.1%}".replace("%", " %"))
    return f"| {name} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m tracker.evaluate.peer", description=__doc__)
    parser.add_argument("--otava", metavar="PYTHON", required=True)
    parser.add_argument("--series", type=int, default=500, help="of each noise (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    otava = Otava(given.otava)
    try:
        print("| Bandwatch / Otava | false alarms per 100 runs | 2 % drop | 5 % drop |")
        print("| --- | ---: | ---: | ---: |")
        for number, name in enumerate(ROWS):
            rng = np.random.default_rng([given.seed, number])
            print(row(name, NOISES[name], otava, rng, given.series), flush=True)
        print("\n| whole history | Bandwatch | Otava |\n| --- | ---: | ---: |")
        theirs = otava.seconds()
        for runs, seconds in histories_s().items():
            print(f"| {runs} runs | {seconds * 1e3:.2f} ms | {theirs[runs] * 1e3:.2f} ms |")
    except (RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
