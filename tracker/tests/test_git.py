"""Facts from git in every state a checkout can be in, none of them a traceback."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tracker import git
from tracker.errors import GitError
from tracker.model import Checkout
from tracker.record import parse_run
from tracker.record.dump import dump_run
from tracker.tests.factory import make_run


def run_git(folder: Path, *arguments: str, **variables: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": "2026-03-01T10:00:00+05:30",
        "GIT_COMMITTER_DATE": "2026-03-01T11:00:00+01:00",
        **variables,
    }
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def commit_file(folder: Path, text: str, subject: str = "Change", **variables: str) -> str:
    (folder / "file.txt").write_text(text)
    run_git(folder, "add", "file.txt")
    run_git(folder, "commit", "-q", "--allow-empty-message", "-m", subject, **variables)
    return run_git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work tree"
    folder.mkdir()
    run_git(folder, "init", "-q", "-b", "main")
    commit_file(folder, "one", "First")
    commit_file(folder, "two", "Second")
    return folder


def checkout(folder: Path, environ: Mapping[str, str] | None = None) -> Checkout:
    found = git.checkout(folder, environ or {})
    # Whatever git says must be fit for a record.
    run = replace(make_run(), checkout=found)
    assert parse_run(json.loads(json.dumps(dump_run(run)))).checkout == found
    return found


def test_a_clean_checkout_is_told_in_full(repository: Path) -> None:
    found = checkout(repository)
    assert found.commit is not None
    assert found.commit.sha == run_git(repository, "rev-parse", "HEAD")
    assert found.commit.parents == (run_git(repository, "rev-parse", "HEAD~"),)
    assert found.commit.author == "Ada <ada@example.org>"
    assert found.commit.author_time == "2026-03-01T10:00:00+05:30"
    assert found.commit.commit_time == "2026-03-01T11:00:00+01:00"
    assert found.commit.subject == "Second"
    assert (found.branch, found.dirty, found.shallow, found.notes) == ("main", False, False, ())
    assert found.tree == run_git(repository, "rev-parse", "HEAD^{tree}")


def test_a_changed_file_makes_the_tree_dirty_and_tells_changes_apart(repository: Path) -> None:
    (repository / "file.txt").write_text("three")
    first = checkout(repository)
    (repository / "file.txt").write_text("four")
    second = checkout(repository)
    assert first.dirty
    assert second.dirty
    assert first.tree
    assert second.tree
    assert first.tree != second.tree
    assert re.fullmatch(r"[0-9a-f]{40}\+[0-9a-f]{12}", first.tree)


def test_an_untracked_file_is_noted_and_not_dirty(repository: Path) -> None:
    (repository / "notes.txt").write_text("x")
    found = checkout(repository)
    assert not found.dirty
    assert found.notes == ("1 untracked files or folders, not part of the commit",)


def test_a_detached_head_is_noted(repository: Path) -> None:
    run_git(repository, "checkout", "-q", "--detach")
    found = checkout(repository)
    assert found.branch is None
    assert found.notes == ("detached head: no branch is known",)


def test_a_shallow_clone_is_noted_and_keeps_the_true_parents(
    repository: Path, tmp_path: Path
) -> None:
    parent = run_git(repository, "rev-parse", "HEAD~")
    run_git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    found = checkout(tmp_path / "shallow")
    assert found.shallow
    assert found.commit is not None
    assert found.commit.parents == (parent,)
    assert any(note.startswith("shallow clone") for note in found.notes)
    assert git.ancestors(tmp_path / "shallow") == ()


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path) -> None:
    found = checkout(tmp_path)
    assert found.commit is None
    assert found.notes[0].endswith("is no git checkout")
    assert checkout(tmp_path / "absent").commit is None


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    assert checkout(tmp_path).notes == ("a repository without a commit yet",)


def test_a_bare_repository_counts_as_dirty(repository: Path, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "-q", "--bare", str(repository), "bare")
    found = checkout(tmp_path / "bare")
    assert found.dirty
    assert found.notes[0].startswith("taken as dirty")


def test_missing_git_is_a_note(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert checkout(repository).notes == (
        "no git facts: cannot read the checkout: git is not installed",
    )


def test_a_broken_repository_is_a_note(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("nonsense")
    assert checkout(repository).notes[0].startswith("no git facts")


def test_variables_of_a_hook_do_not_lead_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    run_git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    found = checkout(repository)
    assert found.commit is not None
    assert not found.dirty


def test_hostile_text_is_made_safe(repository: Path) -> None:
    hostile = "\x1b[31mred\x1b[0m \u202e <script>" + "x" * 5000
    run_git(repository, "checkout", "-q", "-b", "b'$(touch${IFS}pwned)")
    commit_file(repository, "three", hostile, GIT_AUTHOR_NAME="Eve\x1b]0;title\x07")
    found = checkout(repository)
    assert found.commit is not None
    assert found.commit.subject is not None
    assert found.commit.author is not None
    assert found.commit.subject.startswith("[31mred [0m <script>x")
    assert len(found.commit.subject) == 1000
    assert found.commit.author.isprintable()
    assert found.branch == "b'$(touch${IFS}pwned)"
    assert not (repository / "pwned").exists()


def test_text_in_an_unknown_encoding_is_replaced(repository: Path) -> None:
    tree = run_git(repository, "rev-parse", "HEAD^{tree}")
    raw = (
        b"tree %s\nauthor \xff <\xfe> 99999999999999999 +0000\ncommitter A <a> 1700000000 +9959\n\n\xff\xfe\n"
        % tree.encode()
    )
    done = subprocess.run(
        [
            "git",
            "-C",
            str(repository),
            "hash-object",
            "-t",
            "commit",
            "-w",
            "--literally",
            "--stdin",
        ],
        input=raw,
        capture_output=True,
        check=True,
    )
    run_git(repository, "reset", "-q", "--hard", done.stdout.decode().strip())
    found = checkout(repository)
    assert found.commit is not None
    assert found.commit.subject == "\ufffd\ufffd"


def test_settings_of_a_repository_run_nothing(repository: Path) -> None:
    trap = repository / ".git" / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{repository}/pwned'\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "diff.external", "pager.log", "gpg.program"):
        run_git(repository, "config", name, str(trap))
    run_git(repository, "config", "log.showSignature", "true")
    (repository / "file.txt").write_text("three")
    assert checkout(repository).dirty
    assert len(git.history(repository)) == 2
    assert not (repository / "pwned").exists()


def test_a_ref_that_looks_like_an_option_is_no_option(repository: Path) -> None:
    for ref in ("--help", "-h", "--upload-pack=x", "", "a\x00b", "nope", "HEAD^{tree}x"):
        with pytest.raises(GitError, match="cannot resolve"):
            git.resolve(ref, repository)


def test_ancestry_of_a_merge(repository: Path) -> None:
    run_git(repository, "checkout", "-q", "-b", "side", "HEAD~")
    side = commit_file(repository, "side", GIT_COMMITTER_DATE="2026-03-02T00:00:00Z")
    run_git(repository, "checkout", "-q", "main")
    main = run_git(repository, "rev-parse", "HEAD")
    run_git(
        repository,
        "merge",
        "-q",
        "-s",
        "ours",
        "-m",
        "Merge",
        "side",
        GIT_COMMITTER_DATE="2026-03-03T00:00:00Z",
    )
    first = run_git(repository, "rev-list", "--max-parents=0", "HEAD")
    assert git.commit("HEAD", repository).parents == (main, side)
    assert git.ancestors(repository) == (side, main, first)
    assert git.ancestors(repository, limit=1) == (side,)
    assert git.merge_base("side", "HEAD^1", repository) == first
    assert git.reachable(repository) == {git.resolve("HEAD", repository), side, main, first}
    assert [c.sha for c in git.history(repository, limit=2)] == [
        git.resolve("HEAD", repository),
        side,
    ]


def test_unrelated_commits_have_no_merge_base(repository: Path) -> None:
    run_git(repository, "checkout", "-q", "--orphan", "other")
    commit_file(repository, "x")
    assert git.merge_base("main", "other", repository) is None


def merge_of_pull(repository: Path) -> tuple[str, str, str]:
    """Return base, head and fork point of a checked-out test-merge commit."""
    fork = run_git(repository, "rev-parse", "HEAD")
    run_git(repository, "checkout", "-q", "-b", "feature")
    head = commit_file(repository, "feature")
    run_git(repository, "checkout", "-q", "main")
    run_git(repository, "commit", "-q", "--allow-empty", "-m", "On main")
    base = run_git(repository, "rev-parse", "HEAD")
    run_git(repository, "checkout", "-q", "--detach")
    run_git(repository, "merge", "-q", "-m", "Merge", "feature")
    return base, head, fork


def test_a_pull_requests_test_merge_tells_head_base_and_merge_base(
    repository: Path, tmp_path: Path
) -> None:
    base, head, fork = merge_of_pull(repository)
    event = tmp_path / "event.json"
    # The event names the base as it was when the event was made: behind what was merged.
    event.write_text(json.dumps({"pull_request": {"head": {"sha": head}, "base": {"sha": fork}}}))
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_HEAD_REF": "feature",
        "GITHUB_REF_NAME": "7/merge",
    }
    found = checkout(repository, environ)
    assert (found.head, found.base, found.merge_base) == (head, base, fork)
    assert found.branch == "feature"
    assert found.notes == ()


def test_gitlab_names_the_same_things(repository: Path) -> None:
    base, head, fork = merge_of_pull(repository)
    environ = {
        "GITLAB_CI": "true",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "feature",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": head,
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": fork,
    }
    found = checkout(repository, environ)
    assert (found.head, found.base, found.merge_base, found.branch) == (head, base, fork, "feature")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"pull_request": 5}',
        '{"pull_request": {"head": {"sha": "x; rm"}}}',
        "[" * 100_000,
    ],
)
def test_an_event_that_says_nothing_is_ignored(repository: Path, tmp_path: Path, text: str) -> None:
    event = tmp_path / "event.json"
    event.write_text(text)
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
    }
    found = checkout(repository, environ)
    assert (found.head, found.base, found.merge_base) == (None, None, None)


def test_a_push_to_a_branch_has_no_pull_request(repository: Path) -> None:
    run_git(repository, "checkout", "-q", "--detach")
    found = checkout(
        repository,
        {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push", "GITHUB_REF_NAME": "main"},
    )
    assert (found.branch, found.head, found.notes) == ("main", None, ())
