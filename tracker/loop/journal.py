"""What a measuring process wrote down, read back; a line that a crash cut off is left out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracker.collect import Collected, Collector
from tracker.errors import RecordError, UnfitError
from tracker.last_words import telling_line
from tracker.record import parse_json
from tracker.report.escape import plain

MAX_BYTES = 512 << 20
# Exit codes of pytest.
INTERNAL, USAGE = 3, 4


@dataclass(slots=True)
class Phase:
    """How one phase of a test ended: what `Collector` asks of a report."""

    nodeid: str
    when: str | None
    outcome: str
    user_properties: list[tuple[str, object]]


@dataclass(slots=True)
class ExpectedFailure(Phase):
    """A phase of a test that is marked as expected to fail."""

    wasxfail: str


@dataclass(slots=True)
class Journal:
    """The lines by kind; of several processes the last counts, with the tests that others ended.

    `stopped` is why the session ended itself, `finished` its exit status. `imported` are the
    modules that were imported only while the tests ran, `origins` the files of those of another
    checkout, `looked_in` the folders that they may have been found in.
    """

    phases: list[Phase] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    uncollected: dict[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    stopped: tuple[str, int | None] | None = None
    finished: int | None = None
    imported: tuple[str, ...] = ()
    origins: dict[str, str] = field(default_factory=dict)
    looked_in: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether nothing is left to be run.

        What kept a process from its end may be mended before the next call.
        """
        ended = self.finished is not None and self.finished not in {INTERNAL, USAGE}
        return ended and not self.uncollected and not self.stopped

    @property
    def unfit(self) -> str | None:
        """Why nothing can be measured here, None where that was not said."""
        found = self.stopped is not None and self.stopped[1] == UnfitError.exit_code
        return self.stopped[0] if self.stopped and found else None

    def begin(self) -> None:
        """Note that a process began: what kept an earlier one from its end is not true of it."""
        done = self.done()
        self.phases = [phase for phase in self.phases if phase.nodeid in done]
        self.reasons = {name: why for name, why in self.reasons.items() if name in done}
        self.uncollected.clear()
        self.absent, self.stopped, self.finished = (), None, None

    def done(self) -> frozenset[str]:
        """Return the tests that ran to the end of their tear-down."""
        return frozenset(phase.nodeid for phase in self.phases if phase.when == "teardown")

    def collect(self) -> Collected:
        """Return the records of all tests that ran to their end."""
        collector, done = Collector(), self.done()
        for phase in self.phases:
            if phase.nodeid in done:
                collector.add(phase)
        return collector.collect()

    def failed(self) -> dict[str, str]:
        """Return the tests that did not pass, with a line of why."""
        return {
            phase.nodeid: self.reasons.get(phase.nodeid, "failed")
            for phase in self.phases
            if phase.outcome == "failed"
        }


def read_journal(path: Path) -> Journal:
    """Return the journal in a file, an empty one where there is no file.

    Raises RecordError for a file that is far too large or is no journal.
    """
    journal = Journal()
    for line in _lines(path):
        kind = line.get("kind")
        if kind == "began":
            journal.begin()
        elif kind == "phase":
            _take_phase(journal, line)
        elif kind == "collected":
            journal.absent = tuple(line["absent"])
        elif kind == "uncollected":
            journal.uncollected[line["name"]] = telling_line(line["text"])
        elif kind == "stopped":
            journal.stopped = plain(line["text"]), line["code"]
        elif kind == "finished":
            journal.finished = line["exit"]
        elif kind == "imported":
            journal.imported = tuple(line["names"])
        elif kind == "origins":
            journal.origins |= line["files"]
            journal.looked_in = tuple(line["path"])
    return journal


def cut_half_line(path: Path) -> None:
    """Take away the end of a line that a crash left unfinished, before another is written to it."""
    if not path.is_file():
        return
    with path.open("r+b") as file:
        whole = file.read()
        file.truncate(whole.rfind(b"\n") + 1)


def _take_phase(journal: Journal, line: Mapping[str, Any]) -> None:
    properties = [(str(name), value) for name, value in line["user_properties"]]
    nodeid = line["nodeid"]
    facts = (nodeid, line["when"], line["outcome"], properties)
    journal.phases.append(
        ExpectedFailure(*facts, line["wasxfail"]) if "wasxfail" in line else Phase(*facts)
    )
    if "text" in line:
        journal.reasons.setdefault(nodeid, telling_line(line["text"]))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    if path.stat().st_size > MAX_BYTES:
        raise RecordError(f"cannot read {path}: it is larger than {MAX_BYTES >> 20} MiB")
    whole = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(whole, start=1):
        if not line.endswith(b"\n"):
            return  # the process died while it wrote this
        value = parse_json(line, f"{path}, line {number}")
        if not isinstance(value, dict):
            raise RecordError(f"cannot read {path}: line {number} is no object")
        yield value
