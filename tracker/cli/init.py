"""`bandwatch init`: make another repository ready."""

import re
import sys
from pathlib import Path

import click

from tracker.cli.options import emit, refuse_idle
from tracker.doctor.packages import install_command, installed
from tracker.loop.init import EXAMPLE, LABELS, Done, Outcome, Wishes, init, top_folder
from tracker.loop.repository import Repository
from tracker.loop.source import EXPECTED, Source, known_source, parse_source
from tracker.report.document import Column, Document, Kind, Row, Table
from tracker.report.formats import Format

COLUMNS = (Column("file", "file", Kind.CODE), Column("outcome", "outcome", Kind.WORD))
_LABELS = re.compile(r"[\w.-]+(\s*,\s*[\w.-]+)*")
_BRANCH = re.compile(r"[\w./-]+")
_NEXT = (
    (
        f"put your kernel in the place of the one in {EXAMPLE}, and commit: what is recorded once "
        "is missed when it goes"
    ),
    "then: pytest (checks it), pytest --benchmark (times it, records it, judges it)",
    "a second run has the first one as its baseline",
)
_NEXT_CI = (
    (
        "for CI: a runner with the labels in the workflow, the environments gpu-bench and "
        "gpu-bench-review, in each the secret BANDWATCH_STORE, a URL of a PostgreSQL store"
    ),
    "how to make that runner safe: docs/self-hosted-runner.md of Bandwatch",
)

_MEASURING = ("pytest", "pytest-benchmark", "torch")
_NO_REPOSITORY = "this folder is no git repository: call git init, for results belong to commits"


@click.command("init", short_help="Make another repository ready: settings, workflow, example.")
@click.option(
    "--labels",
    default=LABELS,
    show_default=True,
    help="Labels of your GPU runner, separated by commas.",
)
@click.option("--branch", help="The branch whose history is kept.  [default: the main one]")
@click.option(
    "--source",
    metavar="URL@COMMIT",
    help="Where CI installs Bandwatch from: its repository and a full commit id.  [default: where "
    "this one came from]",
)
@click.option("--hook", is_flag=True, help="Also measure before each push: a pre-push hook.")
@click.option("--hook-only", is_flag=True, help="Write the pre-push hook and nothing else.")
@click.option("--force", is_flag=True, help="Replace files of yours without asking.")
def command(
    *,
    labels: str,
    branch: str | None,
    source: str | None,
    hook: bool,
    hook_only: bool,
    force: bool,
) -> int:
    """Write settings, a workflow and an example of a measured kernel into this repository.

    The workflow installs Bandwatch from one commit of its repository, for it is on no index. Where
    that commit is not known, no workflow is written and --source has to name it.

    A file that is there already is kept unless you say otherwise when asked; without a terminal to
    ask on, it is kept. pyproject.toml and .gitignore are only added to.

    Example: bandwatch init
    """
    if hook_only:
        refuse_idle("--hook-only writes no workflow", "labels", "branch", "source")
    if not _LABELS.fullmatch(labels):
        raise click.BadParameter(f"{labels!r} are no labels", param_hint="--labels")
    chosen = _main_branch(Path.cwd()) if branch is None else branch
    if not _BRANCH.fullmatch(chosen):
        raise click.BadParameter(f"{chosen!r} is no usable branch name", param_hint="--branch")
    found = known_source() if source is None else parse_source(source)
    known = found if isinstance(found, Source) else None
    wishes = Wishes(labels, chosen, hook or hook_only, files=not hook_only, source=known)
    done = init(Path.cwd(), wishes, lambda name: force or _ask(name))
    following = () if hook_only else (*_missing(), *_NEXT, *_ci(found))
    if top_folder(Path.cwd()) is None:
        following = (_NO_REPOSITORY, *following)
    return emit(_document(done, following), Format.TEXT)


def _ci(found: Source | str) -> tuple[str, ...]:
    """Return what CI needs: settings on GitHub, or first of all a commit to install."""
    if isinstance(found, Source):
        return _NEXT_CI
    cure = f"name a commit: bandwatch init --source {EXPECTED}"
    return (f"no workflow was written: CI cannot install this Bandwatch, for {found}; {cure}",)


def _missing() -> tuple[str, ...]:
    """Return what has to be installed here before anything can be measured."""
    absent = [name for name in _MEASURING if installed(name) is None]
    if not absent:
        return ()
    return (f"first, for {', '.join(absent)}: {install_command('measure', names=absent)}",)


def _main_branch(root: Path) -> str:
    """Return what the remote's head names, else main or master, else what is checked out."""
    repository = Repository(root)
    remote = repository.run("symbolic-ref", "--short", "refs/remotes/origin/HEAD", check=False)
    if remote:
        return remote.removeprefix("origin/")
    for name in ("main", "master"):
        if repository.run("rev-parse", "--verify", "--quiet", f"refs/heads/{name}", check=False):
            return name
    return repository.run("symbolic-ref", "--short", "HEAD", check=False) or "main"


def _ask(name: str) -> bool:
    return sys.stdin.isatty() and click.confirm(f"{name} is there already; replace it?")


def _document(done: tuple[Done, ...], following: tuple[str, ...]) -> Document:
    changed = sum(item.outcome in {Outcome.WRITTEN, Outcome.EXTENDED} for item in done)
    kept = [item.path for item in done if item.outcome is Outcome.KEPT]
    notes = (*following, *(f"{name} is yours and was kept; --force replaces it" for name in kept))
    return Document(
        kind="init",
        title="",
        summary=f"{changed} of {len(done)} files written or extended",
        facts={"changed": changed, "kept": len(kept)},
        tables=(
            Table(
                "files",
                COLUMNS,
                tuple(Row({"file": item.path, "outcome": item.outcome.value}) for item in done),
            ),
        ),
        notes=notes,
    )
