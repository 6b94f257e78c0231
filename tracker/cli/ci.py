"""`bandwatch ci`: what a workflow runs, and a person by hand, with the same result."""

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from tracker import git
from tracker.cli.options import emit, note, refuse_idle
from tracker.commands import MOST_REPEATS
from tracker.config import STORE_VARIABLE, Config, load_config
from tracker.doctor.devices import cpu_name, survey_gpus
from tracker.doctor.finding import Level
from tracker.doctor.measured import plan as plan_device
from tracker.doctor.packages import probe_torch
from tracker.errors import RecordError
from tracker.loop.ci import Plan, Workshop, run_ci
from tracker.loop.ci_report import (
    links_from,
    session_document,
    troubles,
    write_files,
    write_summary,
)
from tracker.loop.durations import Duration
from tracker.loop.judging import Judgement, judge_session
from tracker.loop.lock import held
from tracker.loop.session import Session
from tracker.loop.settings import read_loop_settings
from tracker.loop.waived import refuse_waivers
from tracker.loop.workplace import own_folder, workplace
from tracker.model import Checkout
from tracker.report.escape import plain
from tracker.report.formats import Format
from tracker.report.verdicts import COMMENT_LIMIT, TEXT_LIMIT
from tracker.session import ci_facts

_OUT = "ci"


@click.command("ci", short_help="Measure, record, judge and report, as CI does.")
@click.option("-k", "keyword", metavar="EXPR", help="Only tests that pytest's -k EXPR selects.")
@click.option("--quick", is_flag=True, help="The suite's small selection.")
@click.option(
    "--ab", "turns", is_flag=True, help="Measure suspicious cases in turns with the base."
)
@click.option(
    "--base", metavar="COMMIT", help="What --ab compares with, instead of the merge base."
)
@click.option(
    "--record/--no-record", default=True, show_default=True, help="Put the runs into the store."
)
@click.option("--gpu", is_flag=True, help="Measure no CPU: exit code 4 where no GPU can be used.")
@click.option(
    "--allow-undecided",
    is_flag=True,
    help="Exit with 0 where everything was measured and undecided is the worst of it.",
)
@click.option(
    "--allow-vanished",
    is_flag=True,
    help="Let cases pass that this run lacks, for they were removed on purpose.",
)
@click.option(
    "--repeats",
    type=click.IntRange(0, MOST_REPEATS),
    default=4,
    show_default=True,
    help="At most so many fresh processes for suspicious cases.",
)
@click.option("--lock", metavar="FILE", help="Hold this file while measuring; others lock it too.")
@click.option(
    "--lock-timeout",
    type=Duration(),
    default=1800.0,
    show_default="30m",
    metavar="TIME",
    help="How long to wait for the lock before exit code 4.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for records and reports.  [default: .bandwatch/ci]",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, file_okay=False),
    help="Judge and report the records in this folder; measure nothing.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([str(form) for form in Format]),
    default=str(Format.TEXT),
    show_default=True,
    help="How to print the result.",
)
@click.option(
    "--store",
    metavar="URL",
    help=f"The store to use; before {STORE_VARIABLE} and [tool.bandwatch] store.",
)
def command(
    *,
    keyword: str | None,
    quick: bool,
    turns: bool,
    base: str | None,
    record: bool,
    gpu: bool,
    allow_undecided: bool,
    allow_vanished: bool,
    repeats: int,
    lock: str | None,
    lock_timeout: float,
    out: Path | None,
    source: Path | None,
    form: str,
    store: str | None,
) -> int:
    """Measure the suite, record it, judge every case and write all reports.

    Suspicious cases are measured again in fresh processes before anybody is alarmed, with --ab in
    turns with the base instead. The folder of --out has the records, report.json, report.html,
    junit.xml and comment.md afterwards. Interrupted, the same call goes on where it stopped.

    Exit codes: 0 no regression, 1 regression or failed test, 3 undecided or nothing measured, 4
    unfit environment.

    Example: bandwatch ci --quick
    """
    _refuse_idle(measures=source is None, turns=turns, locks=lock is not None, record=record)
    config = load_config(store)
    if source is not None:
        session, folder = _left_behind(source), out or source
    else:
        folder = out or own_folder(config.root) / _OUT
        plan = Plan(
            quick=quick,
            keyword=keyword,
            turns=turns,
            record=record,
            base=base,
            repeats=repeats,
        )
        holding = partial(held, Path(lock), lock_timeout) if lock is not None else nullcontext
        session = _measured(plan, config, folder, holding, partial(_unfit, gpu=gpu))
    found = judge_session(session, config.thresholds, datetime.now(UTC).date())
    if allow_vanished:
        found = found.without_vanished()
    return _report(session, found, config, folder, Format(form), strict=not allow_undecided)


def _refuse_idle(*, measures: bool, turns: bool, locks: bool, record: bool) -> None:
    """Refuse options that only another one gives an effect."""
    if not measures:
        names = ("keyword", "quick", "turns", "base", "gpu", "repeats", "lock", "lock_timeout")
        recording = ("store", "record") if record else ("store",)
        refuse_idle("--from measures and records nothing", *names, *recording)
    if not turns:
        refuse_idle("without --ab nothing is measured in turns with a base", "base")
    if not locks:
        refuse_idle("without --lock no file is waited for", "lock_timeout")


def _left_behind(folder: Path) -> Session:
    """Return the session that another job left, which must be of the commit that CI asks about."""
    session = Session.read(folder)
    if os.environ.get("GITHUB_EVENT_NAME", "").startswith("pull_request"):
        refuse_waivers(session)
    wanted = os.environ.get("GITHUB_SHA") if os.environ.get("GITHUB_ACTIONS") == "true" else None
    found = {run.checkout.commit.sha for run in session.runs("head") if run.checkout.commit}
    if wanted and found and found != {wanted}:
        raise RecordError(
            f"cannot judge {folder}: its records are of {', '.join(sorted(found))[:200]}, "
            f"expected those of {wanted}"
        )
    return session


def _measured(
    plan: Plan,
    config: Config,
    folder: Path,
    lock: Callable[[], AbstractContextManager[None]],
    fit: Callable[[], str | None],
) -> Session:
    checkout = git.checkout(config.root)
    arguments = read_loop_settings(config.root).arguments
    key = plan.key(checkout, arguments)
    session = Session.begin(folder, key, quick=plan.quick, keyword=plan.keyword)
    with workplace(config, f"journals/{key}", note) as place:
        bench = replace(place, stamp=replace(place.stamp, ci=ci_facts(os.environ)))
        if len(session.notebook.entries) == 1:  # begun anew: journals of another day are stale
            bench.clear()
        run_ci(
            plan,
            Workshop(
                config=config,
                bench=bench,
                session=session,
                checkout=checkout,
                today=datetime.now(UTC).date(),
                fit=fit,
                lock=lock,
            ),
        )
        if session.has("finished"):
            bench.clear()
    return session


def _unfit(*, gpu: bool) -> str | None:
    """Return why nothing can be measured on this machine (with `gpu`: no GPU), None when it can."""
    survey, torch = survey_gpus(), probe_torch()
    planned = plan_device(survey, torch, cpu_name())
    if planned.device is not None and gpu and not (survey.gpus and torch.available):
        return f"a GPU was asked for, and this would measure {planned.device}"
    if planned.device is not None:
        return None
    failed = [f"{f.name}: {f.found}" for f in planned.findings if f.level is Level.FAIL]
    return "; ".join(failed) or "no device"


def _report(
    session: Session, found: Judgement, config: Config, folder: Path, form: Format, *, strict: bool
) -> int:
    document = partial(session_document, session, found, strict=strict)
    full, short = document(limit=None), document(limit=COMMENT_LIMIT)
    page = read_loop_settings(config.root).page
    checkout = found.runs[0].checkout if found.runs else Checkout()
    links = links_from(os.environ, page, full, reproduce(checkout, session))
    write_files(folder, full, short, links)
    if form is Format.GITHUB:
        write_summary(full, short, links, sys.stdout, os.environ, troubles(session))
        return int(full.exit_code)
    shown = document(limit=TEXT_LIMIT) if form is Format.TEXT else short
    code = emit(shown, form)
    note(f"records and reports are in {folder}")
    return code


def reproduce(checkout: Checkout, session: Session) -> str:
    """Return the command that measures a commit again by hand, as the session was asked to.

    A session from elsewhere is not to be trusted: its words stand quoted.
    """
    asked = next(iter(session.facts("started")), {})
    keyword = asked.get("keyword")
    selection = ("-k", plain(keyword)) if isinstance(keyword, str) else ()
    quick = ("--quick",) if asked.get("quick") is True else ()
    command = shlex.join(("bandwatch", "ci", "--ab", *quick, *selection))
    if checkout.commit is None:
        return "bandwatch ci"
    sha = checkout.commit.sha
    # A pull request's test merge is in no branch: no clone has it by itself.
    fetch = f"git fetch origin {sha} && " if checkout.head not in {None, sha} else ""
    return f"{fetch}git switch --detach {sha[:12]} && {command}"
