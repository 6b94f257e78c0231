"""Which cases ci measures again: what changed, what is open, and what the monitor asks for."""

from dataclasses import replace

from tracker.loop.ci import _suspicious
from tracker.model import Status, VerdictKind
from tracker.report.judged import Judged
from tracker.tests.sides import H200, make_side
from tracker.verdict import Verdict, judge

SAME: Verdict = judge(make_side(256), make_side(256, seed=1))
SLOW: Verdict = judge(make_side(256), make_side(256, 0.5, seed=1))
OPEN: Verdict = judge(make_side(64), make_side(64, 0.03, seed=1))
FIRST: Verdict = judge(None, make_side())


def test_a_quiet_case_is_measured_again_where_the_monitor_asks_for_it() -> None:
    assert not _suspicious(Judged(SAME, None))
    assert _suspicious(Judged(replace(SAME, worth_repeating=True), None))


def noisy_on_a_cpu(slower: float, *, head: bool) -> Judged:
    cpu = replace(H200, backend="cpu", gpu_model="A CPU")
    sides = [make_side(256, environment=cpu), make_side(256, slower, seed=1, environment=cpu)]
    number = 1 if head else 0
    unsettled = replace(sides[number].result, status=Status.NOISY)
    sides[number] = replace(sides[number], result=unsettled)
    return Judged(judge(sides[0], sides[1]), sides[1].result)


def test_a_change_on_a_cpu_that_did_not_settle_is_measured_again() -> None:
    found = noisy_on_a_cpu(5.0, head=True)
    assert found.verdict.kind is VerdictKind.UNDECIDED
    assert _suspicious(found)
    assert not _suspicious(noisy_on_a_cpu(0.0, head=True))
    # Another process of head says nothing of a baseline that did not settle.
    assert not _suspicious(noisy_on_a_cpu(5.0, head=False))


def test_changes_and_open_cases_are_measured_again_and_first_runs_are_not() -> None:
    assert _suspicious(Judged(SLOW, None))
    assert _suspicious(Judged(OPEN, None))
    assert not _suspicious(Judged(FIRST, None))
