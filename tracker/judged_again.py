"""A run of the suite judged together with what measured some of its cases again."""

from collections.abc import Sequence
from datetime import date

from tracker.gate import Gate, judge_run
from tracker.occasion import Meant
from tracker.store import Store
from tracker.thresholds import Thresholds
from tracker.verdict import exit_code


def judge_meant(
    store: Store,
    asked: Meant,
    thresholds: Thresholds,
    *,
    today: date,
    ancestors: Sequence[str] | None = None,
) -> Gate:
    """Return the verdicts on a run; on a case that was measured again the last verdict stands.

    That one is by all processes that measured the case. Arguments as those of `judge_run`.
    """
    gates = [
        judge_run(store, part, thresholds, today=today, ancestors=ancestors)
        for part in (asked.run, *asked.repeats)
    ]
    judged = {item.verdict.case.fingerprint: item for gate in gates for item in gate.judged}
    code = exit_code(item.verdict for item in judged.values())
    notes = dict.fromkeys(note for gate in gates for note in gate.notes)
    return Gate(asked.run, tuple(judged.values()), code, tuple(notes))
