"""The records that tests left in their reports, joined with how each test ended.

Works on the reports that pytest hands to the controller, so with and without xdist. A time counts
only when its test passed from set-up to tear-down.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from tracker.errors import RecordError
from tracker.model import Result, Status
from tracker.record import Envelope, parse_envelope

PROPERTY = "bandwatch"
_UNTIMED = frozenset({Status.INCORRECT, Status.ERROR, Status.NO_SAMPLE})


class Report(Protocol):
    """What is used of pytest's TestReport."""

    @property
    def nodeid(self) -> str:
        """The test."""

    @property
    def when(self) -> str | None:
        """Its phase: setup, call or teardown."""

    @property
    def outcome(self) -> str:
        """How the phase ended: passed, failed or skipped."""

    @property
    def user_properties(self) -> list[tuple[str, object]]:
        """What the test left, so far."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a session measured.

    `problems` are records that could not be used, one line each; `untimed` counts results of tests
    that were checked and, on request, not timed; `failed` counts tests that failed.
    """

    envelopes: tuple[Envelope, ...]
    problems: tuple[str, ...]
    untimed: int = 0
    failed: int = 0


@dataclass(slots=True)
class _Test:
    nodeid: str
    properties: list[tuple[str, object]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


class Collector:
    """Takes reports of all workers; a test that is run again replaces its first attempt."""

    def __init__(self) -> None:
        self._tests: dict[tuple[str, str], _Test] = {}

    def add(self, report: Report) -> None:
        """Take one phase of one test."""
        key = (str(getattr(report, "worker_id", "")), report.nodeid)
        if report.when == "setup" or key not in self._tests:
            self._tests[key] = _Test(report.nodeid)
        test = self._tests[key]
        # Properties pile up from phase to phase, so that the last report has them all.
        test.properties = list(report.user_properties)
        # A test that may fail (xfail) and did has not passed either.
        if report.outcome != "passed" and (
            report.outcome == "failed" or hasattr(report, "wasxfail")
        ):
            test.broken.append(report.when or "call")

    def collect(self) -> Collected:
        """Return every usable record, each case once a device: the first one counts."""
        envelopes: dict[tuple[str, str, str], Envelope] = {}
        problems: list[str] = []
        untimed = 0
        for test in self._tests.values():
            records = [value for name, value in test.properties if name == PROPERTY]
            timed = [value for value in records if not _is_untimed(value)]
            untimed += len(records) - len(timed)
            for envelope in _envelopes(test, timed, problems):
                key = (
                    envelope.environment.fingerprint,
                    envelope.device.uuid,
                    envelope.result.case.fingerprint,
                )
                if key in envelopes:
                    first = envelopes[key].result.test
                    problems.append(
                        f"{test.nodeid} measured {envelope.result.case.label} again after {first}: "
                        "its result is left out; give the tests different cases"
                    )
                else:
                    envelopes[key] = envelope
        failed = sum(bool(test.broken) for test in self._tests.values())
        return Collected(tuple(envelopes.values()), tuple(problems), untimed, failed)


def _is_untimed(data: object) -> bool:
    """Whether a test was checked only: its result is good and has no sample."""
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, dict):
        return False
    return result.get("status") == Status.OK and not result.get("measurements_s")


def _envelopes(test: _Test, records: Iterable[object], problems: list[str]) -> Iterable[Envelope]:
    for data in records:
        try:
            envelope = parse_envelope(data, f"the record of {test.nodeid}")
        except RecordError as error:
            problems.append(str(error))
            continue
        result = replace(envelope.result, test=envelope.result.test or test.nodeid)
        if test.broken:
            result = without_time(result, f"the test failed in its {test.broken[0]} phase")
        yield replace(envelope, result=result)


def without_time(result: Result, reason: str) -> Result:
    """Return what may be kept of a result whose test failed: everything but its time."""
    status = result.status if result.status in _UNTIMED else Status.ERROR
    if result.correctness.passed is False:
        status = Status.INCORRECT
    lost = ("measurements_s", "summary", "median_cycles")
    return replace(
        result,
        status=status,
        measurements_s=(),
        summary=None,
        median_cycles=None,
        energy=None,
        reasons={**dict.fromkeys(lost, reason), "energy": reason, **result.reasons},
    )
