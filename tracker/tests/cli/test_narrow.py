"""On a narrow terminal no list loses what says that a result is not of its commit."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tracker import git
from tracker.model import Checkout, Run
from tracker.occasion import AGAIN
from tracker.store import Store
from tracker.tests.cli.conftest import Command, run_of_commit
from tracker.tests.cli.test_orphans import run_git
from tracker.tests.factory import sha

WIDTHS = ("40", "60", "80", "100", "200")
MEANS = "+ behind a commit: measured with uncommitted changes"
# As long as those of runs that `bandwatch import` brought.
LONG = f"nvbench-{'e' * 40}"
SHA = "ab1e" * 10
MARKED = f"{SHA[:12]}+"


def keep(*runs: Run) -> None:
    with Store.open("runs.db") as store:
        for run in runs:
            store.record(run)


def changed(run: Run, run_id: str) -> Run:
    """Return a run as if its tree had uncommitted changes, and a case was measured again there."""
    assert run.checkout.commit is not None
    commit = replace(run.checkout.commit, sha=SHA)
    checkout = replace(run.checkout, commit=commit, dirty=True)
    return replace(run, run_id=run_id, checkout=checkout, notes=(AGAIN,))


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("run_id", ["0" * 31 + "f", LONG])
def test_a_commit_is_marked_where_its_tree_was_changed_at_any_width(
    bandwatch: Command, monkeypatch: pytest.MonkeyPatch, width: str, run_id: str
) -> None:
    keep(changed(run_of_commit(5), run_id))
    monkeypatch.setenv("COLUMNS", width)
    for command in (("list",), ("history", "relu", "--dirty")):
        answer = bandwatch(*command)
        words = answer.out.split()
        assert words.count(MARKED) == 1
        assert sha(4)[:12] in words
        assert MEANS in " ".join(words)
        assert "repeat" in answer.out
        assert max(map(len, answer.out.splitlines())) <= int(width)


@pytest.mark.usefixtures("filled")
def test_without_changes_there_is_neither_a_mark_nor_a_word_of_it(bandwatch: Command) -> None:
    for command in (("list",), ("history", "relu", "--dirty")):
        assert "+ behind" not in bandwatch(*command).out
        assert not re.search(r"[0-9a-f]{12}\+", bandwatch(*command).out)


@pytest.mark.usefixtures("filled")
def test_machines_read_the_commit_without_the_mark(bandwatch: Command) -> None:
    keep(changed(run_of_commit(5), LONG))
    for command in (("list",), ("history", "relu", "--dirty")):
        header, *lines = bandwatch(*command, "--format", "csv").out.splitlines()
        assert {"commit", "dirty"} <= set(header.split(","))
        assert sum(SHA in line.split(",") for line in lines) == 1
        assert "marked" not in header


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("form", ["markdown", "github"])
def test_other_formats_for_people_have_the_mark_too(bandwatch: Command, form: str) -> None:
    keep(changed(run_of_commit(5), LONG))
    assert f"| {MARKED} |" in bandwatch("list", "--format", form).out


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_that_is_rare_is_lost_beside_the_mark(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    run_git(project, "commit", "--quiet", "--allow-empty", "-m", "One")
    here = git.commit("HEAD", project)
    run = replace(run_of_commit(1), checkout=Checkout(here, "main"))
    keep(run, changed(run_of_commit(5), "0" * 31 + "f"))
    monkeypatch.setenv("COLUMNS", width)
    for command in (("list",), ("history", "relu", "--dirty")):
        words = bandwatch(*command).out.split()
        assert MARKED in words
        assert {"left", "git", "yes"} <= set(words)
