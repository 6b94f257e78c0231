"""One measuring session: facts at its start, recording and judging at its end; no pytest here."""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from tracker import git
from tracker.collect import Collected
from tracker.config import Config, load_config, prepare_folder, redact
from tracker.doctor.devices import has_nvidia_gpu
from tracker.errors import ExitCode, GitError, RecordError, StoreError
from tracker.gate import judge_run
from tracker.merge_base import Selection, silent, standing
from tracker.model import Checkout, Environment, Run
from tracker.queries import find_run
from tracker.reasons import ReasonCode
from tracker.record import assemble, new_run_id, write_run
from tracker.report.document import Document
from tracker.report.headings import environment_words, run_heading
from tracker.report.verdicts import TEXT_LIMIT, Heading, verdict_document
from tracker.store import Store
from tracker.units import counted

_MAX_TEXT = 2000
_PART = "a part of the suite"
# Commits told to the store after each recording, so that series know their order.
_LEARNED = 200


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of a session: a report for each run, an exit code, lines to tell."""

    documents: tuple[Document, ...] = ()
    code: ExitCode = ExitCode.OK
    lines: tuple[str, ...] = ()
    hesitant: bool = False
    """Everything was measured, and undecided is the worst that was found."""

    @property
    def status(self) -> int:
        """What pytest exits with: nobody's test failed where a verdict is only undecided."""
        return int(ExitCode.OK if self.hesitant else self.code)


@dataclass(frozen=True, slots=True)
class Session:
    """Facts that hold from the start of a session on."""

    config: Config
    checkout: Checkout
    started_at: str
    command: str
    ci: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()

    @classmethod
    def begin(
        cls,
        flag: str | None,
        *,
        root: Path,
        here: Path,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        base: Selection | None = None,
        tell: Callable[[str], None] = silent,
    ) -> "Session":
        """Return the session, having opened its store once: a bad one is told before measuring.

        With `base` the commit that this one is compared with is measured first where no store has
        results of it; `tell` shows how far that is. Raises ConfigError or StoreError.
        """
        config = load_config(flag, start=root, here=here, environ=environ)
        prepare_folder(config.store)
        Store.open(config.store.url).close()
        checkout = git.checkout(config.root, environ)
        return cls(
            config=config,
            checkout=checkout,
            told=(_provide_base(config, checkout, base, tell),) if base else (),
            started_at=now(),
            command=redact(shlex.join(["pytest", *arguments]))[:_MAX_TEXT],
            ci=ci_facts(environ),
        )

    def end(self, collected: Collected, *, partial: str | None) -> Ending:
        """Record what was collected and judge it; `partial` says why the suite is not complete."""
        problems = tuple(f"not recorded: {problem}" for problem in collected.problems)
        if not collected.envelopes:
            lines = (*problems, *self.told, _nothing(collected, partial))
            return Ending((), _nothing_code(problems), lines)
        runs = self._runs(collected, partial)
        try:
            with Store.open(self.config.store.url) as store:
                return self._recorded(store, runs, problems)
        except StoreError as error:
            lines = (*problems, str(error), *self._rescue(runs))
            return Ending((), error.exit_code, lines)

    def _runs(self, collected: Collected, partial: str | None) -> tuple[Run, ...]:
        runs = assemble(
            collected.envelopes,
            self.checkout,
            run_id=new_run_id(),
            started_at=self.started_at,
            finished_at=now(),
            complete=partial is None,
            command=self.command,
            ci=self.ci,
            notes=() if partial is None else (f"{_PART}: {partial}",),
        )
        # Workers that took boards of one model in turn each measured a part.
        devices = Counter(run.environment.fingerprint for run in runs)
        return tuple(
            replace(
                run, complete=False, notes=(*run.notes, f"{_PART}: spread over {count} devices")
            )
            if (count := devices[run.environment.fingerprint]) > 1
            else run
            for run in runs
        )

    def _recorded(self, store: Store, runs: Sequence[Run], problems: tuple[str, ...]) -> Ending:
        for run in runs:
            store.record(run)
        self._teach(store)
        gates, told = [], list(self.told)
        for run in runs:
            info = find_run(store, run.run_id)
            config, today = self.config, datetime.now(UTC).date()
            stand = standing(
                store,
                info,
                config.root,
                here=config.store.shown,
                team=config.team,
                tried=bool(self.told),
            )
            told += [stand.told] if stand.told and stand.told not in told else []
            gates.append(
                judge_run(store, info, config.thresholds, today=today, ancestors=stand.line)
            )
        documents = tuple(
            verdict_document(
                _heading(run_heading("", gate.run, gate.notes), gate.run.environment),
                gate.judged,
                gate.code,
                limit=TEXT_LIMIT,
            )
            for gate in gates
        )
        code = worst([gate.code for gate in gates])
        if problems and code is ExitCode.OK:
            code = ExitCode.USAGE
        lines = (*problems, *told, f"recorded in {self.config.store.shown}")
        hesitant = code is ExitCode.UNDECIDED and not any(
            verdict.has(ReasonCode.VANISHED) for gate in gates for verdict in gate.verdicts
        )
        if hesitant:
            lines = (*lines, "undecided fails no test: pytest exits 0, `bandwatch check` exits 3")
        return Ending(documents, code, lines, hesitant)

    def _teach(self, store: Store) -> None:
        if self.checkout.commit is None:
            return
        try:
            store.learn_commits(git.history(self.config.root, limit=_LEARNED))
        except GitError:
            return

    def _rescue(self, runs: Sequence[Run]) -> tuple[str, ...]:
        """Keep measured runs as files when the store cannot take them."""
        folder = self.config.store.file.parent if self.config.store.file else self.config.root
        lines = []
        for run in runs:
            path = folder / f"unrecorded-{run.run_id}.json"
            try:
                write_run(run, path)
            except RecordError as error:
                lines.append(f"the run is lost: {error}")
            else:
                lines.append(f"kept the run as a file; record it with: bandwatch record {path}")
        return tuple(lines)


def _provide_base(
    config: Config, checkout: Checkout, base: Selection, tell: Callable[[str], None]
) -> str:
    from tracker.loop.local_base import provide_base

    return provide_base(config, checkout, base, tell)


def device_line(environment: Environment) -> str:
    """Return the one line that says what was measured, and why when it was no GPU."""
    words = environment_words(environment)
    if environment.backend != "cpu":
        return f"measured the GPU {words}"
    if has_nvidia_gpu():
        return f"an NVIDIA GPU is there but was not used: measured the CPU {words}"
    return f"no NVIDIA GPU: measured the CPU {words}"


def ci_facts(environ: Mapping[str, str]) -> dict[str, str]:
    """Return which CI runs this and where its log is, as far as the environment says."""
    if environ.get("GITHUB_ACTIONS") == "true":
        where = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}"
        names = {"job": "GITHUB_JOB", "attempt": "GITHUB_RUN_ATTEMPT", "event": "GITHUB_EVENT_NAME"}
        facts = {"name": "github", "url": _filled(where, environ)}
    elif environ.get("GITLAB_CI") == "true":
        names = {"url": "CI_JOB_URL", "job": "CI_JOB_NAME", "event": "CI_PIPELINE_SOURCE"}
        facts = {"name": "gitlab"}
    else:
        return {"name": "other"} if environ.get("CI") else {}
    facts |= {key: environ[name] for key, name in names.items() if environ.get(name)}
    return {key: redact(value)[:_MAX_TEXT] for key, value in facts.items() if value}


def worst(codes: Sequence[ExitCode]) -> ExitCode:
    """Return the code of several runs: regression before unfit before undecided before ok."""
    order = (ExitCode.OK, ExitCode.UNDECIDED, ExitCode.UNFIT, ExitCode.REGRESSION)
    return max(codes, key=order.index, default=ExitCode.UNDECIDED)


def now() -> str:
    """Return the time as a record writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _heading(heading: Heading, environment: Environment) -> Heading:
    # The device comes first: whoever reads only one line must know what was measured.
    on = f"on {environment_words(environment)}"
    rest = tuple(line for line in heading.fact_lines if line != on)
    return Heading(heading.title, (device_line(environment), *rest), heading.facts, heading.notes)


def _filled(template: str, environ: Mapping[str, str]) -> str:
    try:
        return template.format_map(environ)
    except KeyError:
        return ""


def _nothing_code(problems: Sequence[str]) -> ExitCode:
    return ExitCode.USAGE if problems else ExitCode.UNDECIDED


def _nothing(collected: Collected, partial: str | None) -> str:
    if collected.untimed:
        return (
            f"nothing was measured: {counted(collected.untimed, 'result')} checked and not timed "
            "(timing is off); nothing is recorded"
        )
    failed = f"{collected.failed} failed" if collected.failed else None
    why = "; ".join(reason for reason in (partial, failed) if reason is not None)
    told = "nothing was measured: no test that ran left a result"
    if why:
        return f"{told} ({why}); nothing is recorded"
    return f"{told}; nothing is recorded; is the suite among the paths?"
