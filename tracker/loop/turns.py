"""Two commits measured in turns: which goes first, what each brought, when enough is known.

Pure: what measures, decides and tells the time is given.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

from tracker.errors import TrackerError
from tracker.loop.fresh import Measured
from tracker.record import Envelope
from tracker.units import counted

Name = Literal["base", "head"]
# Pairs of a balanced block: a steady drift cancels within it.
BLOCK = 2
# Measures sides one after the other, each in a fresh process: all tests for None, else those. The
# processes may start together; each measures when its answer is asked for.
Turns = Callable[[Sequence[Name], tuple[str, ...] | None], Generator[Measured, None, None]]


def silent(text: str) -> None:
    """Tell nobody how far the work is."""
    del text


@dataclass(slots=True)
class Pairs:
    """Envelopes of each side by test, in the order in which they were measured.

    `absent` are wanted tests that a side lacks, `failed` those that did not pass, with why.
    """

    base: dict[str, list[Envelope]] = field(default_factory=dict)
    head: dict[str, list[Envelope]] = field(default_factory=dict)
    rounds: int = 0
    absent: dict[Name, set[str]] = field(default_factory=lambda: {"base": set(), "head": set()})
    failed: dict[Name, dict[str, str]] = field(default_factory=lambda: {"base": {}, "head": {}})
    problems: list[str] = field(default_factory=list)

    def take(self, name: Name, measured: Measured) -> None:
        """Add what one process brought."""
        side = self.base if name == "base" else self.head
        for test, envelope in measured.by_test.items():
            side.setdefault(test, []).append(envelope)
        self.absent[name] |= set(measured.absent)
        self.failed[name].update(measured.failed)
        self.problems += [problem for problem in measured.problems if problem not in self.problems]

    def both(self) -> tuple[str, ...]:
        """Return the tests that both sides measured, in the order of head."""
        return tuple(test for test in self.head if test in self.base)


def order(number: int) -> tuple[Name, Name]:
    """Return who goes first in the pair of this number: base head, head base, head base, base head.

    The sequence of Thue and Morse: over 4 pairs a steady drift cancels, over 8 a bent one too.
    """
    return ("base", "head") if number.bit_count() % 2 == 0 else ("head", "base")


class OutOfTimeError(TrackerError):
    """A time budget that ended before one balanced block was measured; the journals are kept."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop at the latest: pairs of processes, and seconds of them.

    At least one balanced block is measured, unless that goes past `limit_s`. `until` stops it after
    fewer pairs, though decisions may err as for all of them.
    """

    pairs: int = 12
    seconds: float | None = None
    limit_s: float | None = None
    until: int | None = None

    @property
    def looks(self) -> int:
        """How often a decision may be taken: after each balanced block of two pairs."""
        return max(1, self.pairs // BLOCK)


def take_turns(
    turns: Turns,
    open_tests: Callable[[Pairs], Sequence[str]],
    *,
    tests: tuple[str, ...] | None,
    budget: Budget,
    clock: Callable[[], float],
    progress: Callable[[str], None] = silent,
) -> Pairs:
    """Measure both sides in turns until no test is open or the budget is spent.

    `open_tests` names the tests that are still undecided; the others drop out. What is measured
    comes in balanced blocks of two pairs. Raises OutOfTimeError where the limit in seconds
    comes before the end of the first.
    """
    pairs, start, wanted = Pairs(), clock(), tests
    while pairs.rounds < min(budget.pairs, budget.until or budget.pairs):
        if pairs.rounds and _spent(pairs.rounds, clock() - start, budget):
            progress(f"the time budget ends after {pairs.rounds} pairs")
            break
        block = range(pairs.rounds, min(pairs.rounds + BLOCK, budget.pairs))
        names = [name for number in block for name in order(number)]
        limit_s = None if pairs.rounds else budget.limit_s
        with closing(turns(names, wanted)) as measured:
            seconds = [clock() - start] if limit_s is not None else []
            for number, name in enumerate(names):
                _refuse_late(seconds, limit_s, number)
                pairs.take(name, next(measured))
                seconds += [clock() - start] if limit_s is not None else []
        pairs.rounds += len(block)
        wanted = tuple(open_tests(pairs))
        still = counted(len(wanted), "case")
        progress(f"pair {pairs.rounds} of at most {budget.pairs}: {still} open")
        if not wanted:
            break
    return pairs


def _spent(rounds: int, elapsed: float, budget: Budget) -> bool:
    """Return whether another block would go past the budget."""
    return budget.seconds is not None and elapsed * (rounds + BLOCK) / rounds > budget.seconds


def _refuse_late(seconds: Sequence[float], limit_s: float | None, number: int) -> None:
    """Raise OutOfTimeError where the next process would end past the limit.

    `seconds` are the times at the start and after each process; the first waits for all to start,
    so it tells nothing of the next.
    """
    if limit_s is None:
        return
    each = seconds[-1] - seconds[-2] if number > 1 else 0.0
    if seconds[-1] + each > limit_s:
        raise OutOfTimeError(
            f"the time budget ends after {number} of the first {2 * BLOCK} processes, which tell "
            "nothing alone; the same command goes on after them"
        )


def counts(pairs: Pairs) -> Mapping[str, int]:
    """Return how many processes measured each side of each test that both have, at least."""
    return {test: min(len(pairs.base[test]), len(pairs.head[test])) for test in pairs.both()}
