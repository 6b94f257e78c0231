"""Two commits measured in turns: which goes first, what each brought, when enough is known.

Pure: what measures, decides and tells the time is given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracker.loop.durations import counted
from tracker.loop.fresh import Measured
from tracker.record import Envelope

Name = Literal["base", "head"]
# Measures one side in a fresh process: all tests for None, else those.
Turn = Callable[[Name, tuple[str, ...] | None], Measured]


def silent(text: str) -> None:
    """Tell nobody how far the work is."""
    del text


@dataclass(slots=True)
class Pairs:
    """Envelopes of each side by test, in the order in which they were measured."""

    base: dict[str, list[Envelope]] = field(default_factory=dict)
    head: dict[str, list[Envelope]] = field(default_factory=dict)
    rounds: int = 0
    absent: dict[Name, set[str]] = field(default_factory=lambda: {"base": set(), "head": set()})
    problems: list[str] = field(default_factory=list)

    def take(self, name: Name, measured: Measured) -> None:
        """Add what one process brought."""
        side = self.base if name == "base" else self.head
        for test, envelope in measured.by_test.items():
            side.setdefault(test, []).append(envelope)
        self.absent[name] |= set(measured.absent)
        self.problems += [problem for problem in measured.problems if problem not in self.problems]

    def both(self) -> tuple[str, ...]:
        """Return the tests that both sides measured, in the order of head."""
        return tuple(test for test in self.head if test in self.base)


def order(number: int) -> tuple[Name, Name]:
    """Return who goes first in the pair of this number: base head, head base, head base, base head.

    The sequence of Thue and Morse: over 4 pairs a steady drift cancels, over 8 a bent one too.
    """
    return ("base", "head") if number.bit_count() % 2 == 0 else ("head", "base")


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop at the latest: pairs of processes, and seconds of them."""

    pairs: int = 12
    seconds: float | None = None

    @property
    def looks(self) -> int:
        """How often a decision may be taken: after each balanced block of two pairs."""
        return max(1, self.pairs // 2)


def take_turns(
    turn: Turn,
    open_tests: Callable[[Pairs], Sequence[str]],
    *,
    tests: tuple[str, ...] | None,
    budget: Budget,
    clock: Callable[[], float],
    progress: Callable[[str], None] = silent,
) -> Pairs:
    """Measure both sides in turns until no test is open or the budget is spent.

    `open_tests` names the tests that are still undecided; the others drop out. At least one
    balanced block of two pairs is measured.
    """
    pairs, start, wanted = Pairs(), clock(), tests
    while pairs.rounds < budget.pairs:
        if pairs.rounds >= 2 and _spent(pairs.rounds, clock() - start, budget):
            progress(f"the time budget ends after {pairs.rounds} pairs")
            break
        for name in order(pairs.rounds):
            pairs.take(name, turn(name, wanted))
        pairs.rounds += 1
        if pairs.rounds % 2 == 0 or pairs.rounds == budget.pairs:
            wanted = tuple(open_tests(pairs))
            still = counted(len(wanted), "case")
            progress(f"pair {pairs.rounds} of at most {budget.pairs}: {still} open")
            if not wanted:
                break
    return pairs


def _spent(rounds: int, elapsed: float, budget: Budget) -> bool:
    """Return whether another pair would go past the budget."""
    return budget.seconds is not None and elapsed * (rounds + 1) / rounds > budget.seconds


def counts(pairs: Pairs) -> Mapping[str, int]:
    """Return how many processes measured each side of each test that both have, at least."""
    return {test: min(len(pairs.base[test]), len(pairs.head[test])) for test in pairs.both()}
