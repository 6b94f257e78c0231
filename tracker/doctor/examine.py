"""Everything that the doctor looks at, as one report."""

import platform
from collections.abc import Sequence

from tracker import git
from tracker.config import Config
from tracker.doctor.checkout import check_kernels
from tracker.doctor.devices import cpu_name, survey_gpus
from tracker.doctor.finding import Finding, Level
from tracker.doctor.locks import check_locks
from tracker.doctor.measured import plan
from tracker.doctor.packages import check_packages, probe_torch
from tracker.doctor.project import check_git
from tracker.doctor.storage import check_store
from tracker.doctor.tools import check_tools
from tracker.errors import ExitCode
from tracker.report.document import Column, Document, Kind, Row, Table, Tone, footnote

_MARKS = {Level.OK: "ok", Level.INFO: "-", Level.WARN: "!", Level.FAIL: "FAIL"}
_TONES = {Level.WARN: Tone.WARNING, Level.FAIL: Tone.WORSE}
COLUMNS = (
    Column("mark", "", Kind.WORD, machine=False),
    Column("area", "area", Kind.WORD),
    Column("name", "what", Kind.CODE),
    Column("level", None),
    Column("found", "found", Kind.TEXT),
    Column("fix", None),
)


def examine(config: Config) -> Document:
    """Return the report on this machine and checkout; exit code 4 when nothing can be measured."""
    survey, torch = survey_gpus(), probe_torch()
    planned = plan(survey, torch, cpu_name())
    gpu = bool(survey.gpus)
    findings = (
        Finding(
            "system", "Python", Level.OK, f"{platform.python_version()}, {platform.platform()}"
        ),
        *planned.findings,
        *check_packages(gpu=gpu, cuda=survey.cuda),
        *check_tools(gpu=gpu),
        check_kernels(config.root, suite=config.suite),
        *check_git(git.checkout(config.root)),
        *check_store(config.store),
        *check_locks(),
    )
    return doctor_document(findings, planned.device)


def doctor_document(findings: Sequence[Finding], device: str | None) -> Document:
    """Return the findings as a table, with what would be measured as the last line."""
    failures = [finding for finding in findings if finding.level is Level.FAIL]
    fit = device is not None and not failures
    measured = f"would measure {device}" if fit else f"nothing can be measured: {_told(failures)}"
    return Document(
        kind="doctor",
        title="Bandwatch doctor",
        summary=measured,
        facts={"fit": fit, "device": device, "failures": len(failures)},
        tables=(Table("findings", COLUMNS, tuple(map(_row, findings))),),
        exit_code=ExitCode.OK if fit else ExitCode.UNFIT,
        failed=not fit,
    )


def _told(failures: Sequence[Finding]) -> str:
    return "; ".join(f"{f.name} {f.found}" for f in failures) or "no device"


def _row(finding: Finding) -> Row:
    return Row(
        values={
            "area": finding.area,
            "name": finding.name,
            "level": finding.level.value,
            "mark": _MARKS[finding.level],
            "found": finding.found,
            "fix": finding.fix,
        },
        tone=_TONES.get(finding.level, Tone.PLAIN),
        footnotes=(footnote(f"to mend it: {finding.fix}"),) if finding.fix else (),
    )
