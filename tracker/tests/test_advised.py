"""Which command stands beside what a verdict asks to measure again."""

from dataclasses import replace

import pytest

from tracker.advice import advise
from tracker.commands import Again, in_turns, of_compared, of_judged
from tracker.model import Checkout, Commit, VerdictKind
from tracker.reasons import Reason, ReasonCode
from tracker.tests.sides import make_side
from tracker.verdict import Verdict, judge

BASE, HEAD = Checkout(Commit("a" * 40)), Checkout(Commit("b" * 40))
DIRTY = replace(HEAD, dirty=True)
NOWHERE = Checkout()
TURNS = "measure both commits in turn"
AB = f"bandwatch ab {'a' * 12} {'b' * 12}"


def undecided(code: ReasonCode, more: int | None) -> Verdict:
    return Verdict(
        make_side().result.case,
        VerdictKind.UNDECIDED,
        (Reason(code, "why"),),
        more_runs=more,
        what_would_decide=advise(more),
    )


def told(again: Again, code: ReasonCode, more: int | None) -> str:
    return again.tell(undecided(code, more)).what_would_decide


@pytest.mark.parametrize(
    ("code", "more", "sentence"),
    [
        (
            ReasonCode.SUSPICIOUS,
            4,
            "measure head 4 more times in fresh processes (bandwatch ci --repeats 4)",
        ),
        (
            ReasonCode.SUSPICIOUS,
            1,
            "measure head once more in a fresh process (bandwatch ci --repeats 1)",
        ),
        # What is too noisy is not repeated by ci.
        (
            ReasonCode.TOO_NOISY,
            4,
            "measure head 4 more times in fresh processes (pytest --benchmark, 4 times)",
        ),
        (
            ReasonCode.TOO_NOISY,
            1,
            "measure head once more in a fresh process (pytest --benchmark)",
        ),
        (ReasonCode.SUSPICIOUS, None, f"{TURNS} (bandwatch ci --ab), or quieten the machine"),
        # Nobody measures so often, and ci takes no more than 20.
        (ReasonCode.SUSPICIOUS, 21, f"{TURNS} (bandwatch ci --ab), or quieten the machine"),
    ],
)
def test_the_command_fits_what_is_asked_for(
    code: ReasonCode, more: int | None, sentence: str
) -> None:
    assert told(of_judged(BASE, HEAD), code, more) == sentence


def test_compare_takes_one_run_of_each_so_it_names_turns() -> None:
    for more in (4, None):
        found = told(of_compared(BASE, HEAD), ReasonCode.SUSPICIOUS, more)
        assert found == f"{TURNS} ({AB}), or quieten the machine"


def test_uncommitted_changes_and_a_commit_against_itself_are_repeated_in_one_session() -> None:
    for base, head in ((BASE, DIRTY), (HEAD, HEAD)):
        again = of_judged(base, head)
        assert "(bandwatch ci --repeats 4)" in told(again, ReasonCode.SUSPICIOUS, 4)
        assert told(again, ReasonCode.TOO_NOISY, 4) == advise(4)
        assert told(again, ReasonCode.SUSPICIOUS, None) == advise(None)


@pytest.mark.parametrize(
    "again",
    [
        of_judged(BASE, NOWHERE),
        of_compared(BASE, DIRTY),
        of_compared(NOWHERE, HEAD),
        of_compared(HEAD, HEAD),
        in_turns("a" * 40, "b" * 40, 100),
    ],
)
def test_where_no_command_fits_the_sentence_stays_as_it_is(again: Again) -> None:
    for code, more in ((ReasonCode.SUSPICIOUS, 4), (ReasonCode.TOO_NOISY, None)):
        assert again.tell(undecided(code, more)) == undecided(code, more)


def test_a_base_to_be_measured_again_is_told_with_its_command_wherever_it_stands() -> None:
    old = make_side(measured_at="2026-01-01T00:00:00+00:00")
    head = make_side(seed=1, measured_at="2026-06-01T00:00:00+00:00")
    stale = judge(old, head)
    found = of_compared(BASE, HEAD).tell(stale)
    assert found.reasons[0].code is ReasonCode.STALE_BASELINE
    assert found.reasons[0].message == f"{stale.reasons[0].message} ({AB})"
    assert found.what_would_decide == f"{stale.what_would_decide} ({AB})"
    assert (found.exit_code, found.effect) == (stale.exit_code, stale.effect)


def test_twice_the_pairs_are_asked_for_and_never_fewer_than_usual() -> None:
    asked = {pairs: in_turns("a" * 40, "b" * 40, pairs).turns for pairs in (3, 8, 60)}
    assert asked == {3: f"{AB} --pairs 12", 8: f"{AB} --pairs 16", 60: f"{AB} --pairs 100"}
