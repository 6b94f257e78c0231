"""Commits that left the repository keep their results, and lists say that they left."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tracker import git
from tracker.model import Checkout
from tracker.store import Store
from tracker.tests.cli.conftest import Command
from tracker.tests.factory import make_run


def run_git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def squashed(project: Path) -> Path:
    """Three measured commits, of which the last two were squashed into one that nobody measured."""
    for number in (1, 2, 3):
        run_git(project, "commit", "--quiet", "--allow-empty", "-m", f"Change {number}")
        commit = git.commit("HEAD", project)
        with Store.open(str(project / "runs.db")) as store:
            name = f"run-{number:08}"
            store.record(make_run(name, None, minute=number, checkout=Checkout(commit, "main")))
    run_git(project, "reset", "--quiet", "--soft", "HEAD~2")
    run_git(project, "commit", "--quiet", "--allow-empty", "-m", "Changes 2 and 3")
    return project


def rows_of(answer: Any, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(answer.out)["tables"][table]
    return found


def test_lists_show_which_commits_left(squashed: Path, bandwatch: Command) -> None:
    rows = rows_of(bandwatch("list", "--format", "json"), "runs")
    assert [row["left_git"] for row in rows] == [True, True, False]
    text = bandwatch("list").out
    assert "left git" in text
    assert "2 commits have left git" in " ".join(text.split())
    history = bandwatch("history", "cuda_vector", "--format", "json")
    assert [row["left_git"] for row in rows_of(history, "history")] == [False, True, True]


def test_a_branch_that_comes_back_brings_them_back(squashed: Path, bandwatch: Command) -> None:
    run_git(squashed, "tag", "kept", "HEAD@{2}")
    rows = rows_of(bandwatch("list", "--format", "json"), "runs")
    assert [row["left_git"] for row in rows] == [False, False, False]
    assert "left git" not in bandwatch("list").out


def test_a_shallow_clone_says_that_it_cannot_know(
    squashed: Path, bandwatch: Command, tmp_path: Path
) -> None:
    shallow = tmp_path / "shallow"
    run_git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{squashed}", str(shallow))
    store = f"sqlite:///{squashed / 'runs.db'}"
    (squashed / ".git").rename(squashed / "git-of-before")
    (shallow / ".git").rename(squashed / ".git")
    rows = rows_of(bandwatch("list", "--format", "json", "--store", store), "runs")
    assert [row["left_git"] for row in rows] == [None, None, None]
    assert "shallow clone: which commits have left git is unknown" in " ".join(
        bandwatch("list", "--store", store).out.split()
    )


def test_another_projects_store_and_no_checkout_call_nothing_lost(
    squashed: Path, bandwatch: Command
) -> None:
    run_git(squashed, "checkout", "--quiet", "--orphan", "other")
    run_git(squashed, "commit", "--quiet", "--allow-empty", "-m", "Another project")
    run_git(squashed, "branch", "--quiet", "-D", *run_git(
        squashed, "for-each-ref", "--format=%(refname:short)", "refs/heads/ma*"
    ).split())  # fmt: skip
    for _ in range(2):
        rows = rows_of(bandwatch("list", "--format", "json"), "runs")
        assert [row["left_git"] for row in rows] == [None, None, None]
        if (squashed / ".git").exists():
            (squashed / ".git").rename(squashed / "no-more")


def test_a_stash_brings_none_back(squashed: Path, bandwatch: Command) -> None:
    run_git(squashed, "checkout", "--quiet", "--detach", "HEAD@{2}")
    (squashed / "a").touch()
    run_git(squashed, "add", "a")
    run_git(squashed, "stash", "push", "--quiet")
    run_git(squashed, "checkout", "--quiet", "-")
    run_git(squashed, "update-ref", "refs/original/refs/heads/main", "refs/stash")
    rows = rows_of(bandwatch("list", "--format", "json"), "runs")
    assert [row["left_git"] for row in rows] == [True, True, False]
