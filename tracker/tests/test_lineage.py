"""The line of commits that a measured one stands on."""

import subprocess
from pathlib import Path

from tracker import git
from tracker.lineage import fork_of, line_of
from tracker.model import Checkout, Commit

ONE, TWO, THREE = ("1" * 40, "2" * 40, "3" * 40)


def repository(folder: Path, commits: int) -> list[str]:
    def run(*arguments: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    run("init", "--quiet")
    shas = []
    for number in range(commits):
        run("commit", "--quiet", "--allow-empty", "-m", f"Change {number}")
        shas.append(run("rev-parse", "HEAD"))
    return shas


def test_ancestors_come_from_git_newest_first(tmp_path: Path) -> None:
    shas = repository(tmp_path, 3)
    assert line_of(git.checkout(tmp_path), tmp_path) == (shas[1], shas[0])


def test_a_commit_that_git_does_not_know_has_no_line_of_git_s(tmp_path: Path) -> None:
    repository(tmp_path, 1)
    assert line_of(Checkout(commit=Commit(ONE)), tmp_path) is None
    assert line_of(Checkout(), tmp_path) == ()


def test_a_pull_request_s_line_begins_with_its_merge_base(tmp_path: Path) -> None:
    shas = repository(tmp_path, 4)
    checkout = Checkout(commit=Commit(shas[3]), head=shas[3], base=shas[2], merge_base=shas[1])
    assert line_of(checkout, tmp_path) == (shas[1], shas[0])


def test_a_test_merge_s_line_begins_with_the_base_it_joined() -> None:
    merge = Commit(THREE, parents=(ONE, TWO))
    assert fork_of(Checkout(commit=merge, head=TWO, base=ONE, merge_base="0" * 40)) == ONE
    assert fork_of(Checkout(commit=merge)) is None
    assert fork_of(Checkout(commit=Commit(TWO), head=TWO, merge_base=ONE)) == ONE
