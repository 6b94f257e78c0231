"""Pages say of a commit that has left git that it did, where the checkout can tell."""

import subprocess
from pathlib import Path

import pytest
import streamlit as st

from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from tracker import git
from tracker.model import Checkout
from tracker.tests.factory import make_case, make_result, make_run


def run_git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


@pytest.fixture
def squashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """A store of three commits of a project, the working folder, where the last two were squashed."""
    project = tmp_path / "project"
    project.mkdir()
    run_git(project, "init", "--quiet")
    found = []
    for number in (1, 2, 3):
        run_git(project, "commit", "--quiet", "--allow-empty", "-m", f"Change {number}")
        results = (make_result(make_case(), [1.3e-4] * 8, warnings=()),)
        checkout = Checkout(git.commit("HEAD", project), "main")
        name = f"run-{number:08}"
        found.append(make_run(name, None, minute=number, checkout=checkout, results=results))
    run_git(project, "reset", "--quiet", "--soft", "HEAD~2")
    run_git(project, "commit", "--quiet", "--allow-empty", "-m", "Changes 2 and 3")
    monkeypatch.chdir(project)
    st.cache_data.clear()
    shas = [run.checkout.commit.sha for run in found if run.checkout.commit]
    return fill(tmp_path / "runs.db", iter(found)), shas


def test_runs_and_series_tell_which_commits_left_git(
    app: Open, squashed: tuple[str, list[str]]
) -> None:
    address, shas = squashed
    page = app("runs", store=address, run="run-00000003")
    assert not page.exception
    assert pages.table(page)["state"].tolist() == ["commit left git", "commit left git", ""]
    left = f"{shas[2][:7]}, which has left git: no branch or tag leads there"
    assert left in pages.html(page)
    assert "left git" not in pages.html(app("runs", store=address, run="run-00000001"))

    page = app("series", store=address)
    assert not page.exception
    notes = dict(zip(*(pages.table(page)[name] for name in ("sha", "note")), strict=True))
    assert notes == {
        sha[:7]: note
        for sha, note in zip(shas, ["", "commit left git", "commit left git"], strict=True)
    }


def test_away_from_the_checkout_pages_say_nothing_of_it(
    app: Open,
    squashed: tuple[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, _ = squashed
    monkeypatch.chdir(tmp_path)
    page = app("runs", store=address, run="run-00000003")
    assert pages.table(page)["state"].tolist() == ["", "", ""]
    assert "left git" not in pages.html(page)
