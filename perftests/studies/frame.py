"""What every study is made of: a claim with its source, a run, and what the run found.

A study is a module of this folder with `STUDY = Study(name, title, claim, run)`. `run(scope)`
measures through the scope, so that every result goes through the chain of trust and into the store,
and returns `Findings`. `python -m perftests.studies` finds the modules, runs and writes them up.
"""

from __future__ import annotations

import gc
import re
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol

import torch

from perftests.harness.chain import measure
from perftests.harness.oracle import Oracle
from perftests.harness.session import Session, choose_device
from perftests.harness.settings import Settings
from perftests.studies.tables import Row, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from perftests.harness.chain import Outcome
    from perftests.harness.workload import Workload

SAMPLE_S = 0.1
SMALL_SAMPLE_S = 0.04
SMALL_SAMPLES = 24
_FOLDER = Path(__file__).parent
_NAMES_STUDY = re.compile(r"^STUDY\b", re.MULTILINE)


class Draw(Protocol):
    """Draws a picture into an empty matplotlib Figure."""

    def __call__(self, figure: Any) -> None:
        """Draw."""


@dataclass(frozen=True)
class Scope:
    """What a study measures with.

    `small` asks for sizes that a CPU has done in seconds; it is set on a CPU and by `--small`.
    `kept` collects the envelopes that go into the store.
    """

    session: Session
    device: torch.device
    small: bool
    kept: list[dict[str, Any]] = field(default_factory=list)

    @property
    def gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.type == "cuda"

    def measure(self, workload: Workload, mode: str = "cold") -> Outcome:
        """Return what the chain of trust found, kept for the store with or without a time.

        Raises RuntimeError naming the workload and the link when the chain broke.
        """
        outcome = measure(workload, self.session, mode=mode)
        self.keep(outcome.envelope)
        if outcome.broken is not None:
            raise RuntimeError(f"no time for {workload.label} {mode}: {outcome.broken}")
        return outcome

    def keep(self, envelope: dict[str, Any]) -> None:
        """Keep the envelope of a result that was not measured here: it goes into the store too."""
        self.kept.append(envelope)

    def floor_s(self) -> float | None:
        """Return what the timer says of an empty kernel, cold; None on a CPU."""
        if not self.gpu:
            return None
        bench = self.session.bench(self.device)
        with bench.lock.alone(), bench.device.stream():
            return bench.calibrator.floor_s("cold")

    def facts(self) -> dict[str, Any]:
        """Return environment and device, as the record has them."""
        bench = self.session.bench(self.device)
        return {"environment": bench.environment, "device": bench.facts}


@dataclass(frozen=True)
class Findings:
    """Tables, the paragraph computed from their rows, and the picture (None where there is none).

    The verdict says where the claim holds on this hardware and where not.
    """

    sections: tuple[Section, ...]
    verdict: str
    draw: Draw | None = None


@dataclass(frozen=True)
class Study:
    """One claim and how it is tested. `claim` is a paragraph that names its source.

    `host` says that the host's pace is part of what is timed. Of many studies such a one goes
    first: where torch's profiler was used, launches are slower for the rest of the process.
    """

    name: str
    title: str
    claim: str
    run: Callable[[Scope], Findings]
    host: bool = False


@dataclass(frozen=True)
class Catalogue:
    """The studies by name, and the modules that cannot be imported, with the reason."""

    studies: Mapping[str, Study]
    broken: Mapping[str, str]


def missing(title: str, why: str) -> Section:
    """Return the section of a part that this machine cannot measure. `why` is no whole sentence."""
    return Section(title, "Not measured here", [{"why": why}])


def attempted(title: str, part: Callable[[], Section]) -> Section:
    """Return a part's section, one with the reason where the part fails: the rest goes on."""
    try:
        return part()
    except Exception as error:  # noqa: BLE001 - whatever it was, the other parts count
        return missing(title, reason_of(error))


def reason_of(error: BaseException) -> str:
    """Return an error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}"[:300] if lines else type(error).__name__


def of_this_device(scope: Scope, verdict: str) -> str:
    """Return a verdict on a claim about GPUs, with the proviso where no GPU took part."""
    if scope.gpu:
        return verdict
    return f"The claim is about GPUs, so it cannot be tested here. On this CPU: {verdict}"


def measured_rows(section: Section) -> list[Row]:
    """Return the rows of a section, none where it says only why it was not measured."""
    return [row for row in section.rows if set(row) != {"why"}]


def discover(folder: Path = _FOLDER, package: str = "perftests.studies") -> Catalogue:
    """Return the studies among the modules of a folder. One that fails to import loses no other."""
    studies: dict[str, Study] = {}
    broken: dict[str, str] = {}
    for name in sorted(found.name for found in iter_modules([str(folder)]) if not found.ispkg):
        # Only a module that names a STUDY is imported: others may ask for what is not here.
        if not _NAMES_STUDY.search((folder / f"{name}.py").read_text("utf-8")):
            continue
        try:
            study = import_module(f"{package}.{name}").STUDY
        except Exception as error:  # noqa: BLE001 - reported when it is asked for
            broken[name] = reason_of(error)
            continue
        studies[study.name] = study
    return Catalogue(studies, broken)


def new_scope(device_name: str, *, small: bool) -> Scope:
    """Return a scope on the device that a flag names. Raises SettingError or UnfitError."""
    device = choose_device(device_name)
    small = small or device.type == "cpu"
    if small:
        settings = Settings(max_seconds=SMALL_SAMPLE_S, max_samples=SMALL_SAMPLES)
    else:
        settings = Settings(max_seconds=SAMPLE_S)
    return Scope(Session(settings), device, small)


@dataclass(frozen=True)
class Done:
    """A study that ran: what it found and how long it took."""

    study: Study
    findings: Findings
    seconds: float


def run(study: Study, scope: Scope) -> Done:
    """Run one study and give its memory back."""
    began = time.perf_counter()
    try:
        findings = study.run(scope)
    finally:
        _release(scope)
    return Done(study, findings, time.perf_counter() - began)


def _release(scope: Scope) -> None:
    scope.session.oracle = Oracle()  # its truths may be gigabytes
    gc.collect()
    if scope.gpu:
        torch.cuda.empty_cache()


def unknown(names: Iterable[str], catalogue: Catalogue) -> list[str]:
    """Return the names that are no study."""
    return [name for name in names if name not in {*catalogue.studies, *catalogue.broken, "all"}]
