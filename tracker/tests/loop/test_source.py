"""Where an installation came from: a commit that others can fetch, or why not."""

from pathlib import Path

import pytest

from tracker.loop.source import Source, known_source, source_of
from tracker.tests.loop import fake

SHA = "0123456789" * 4


def from_git(url: str, commit: str = SHA) -> Source | str:
    return source_of({"url": url, "vcs_info": {"vcs": "git", "commit_id": commit}})


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.org/acme/bandwatch",
        "https://git.example.org/acme/bandwatch.git",
        "https://user:secret@git.example.org/acme/bandwatch.git",
        "ssh://git@git.example.org/acme/bandwatch.git",
        "git@git.example.org:acme/bandwatch.git",
    ],
)
def test_a_git_address_becomes_one_by_https_without_a_password(url: str) -> None:
    assert from_git(url) == Source("https://git.example.org/acme/bandwatch", SHA)


@pytest.mark.parametrize("url", ["http://git.example.org/a/b", "file:///srv/b", "https://x/$(id)"])
def test_an_address_that_is_not_safe_is_none(url: str) -> None:
    assert isinstance(from_git(url), str)
    assert isinstance(from_git("https://git.example.org/acme/bandwatch", "main"), str)


def test_a_wheel_names_no_commit() -> None:
    told = source_of({"url": "file:///srv/bandwatch-1-py3-none-any.whl", "archive_info": {}})
    assert told == "it was installed from bandwatch-1-py3-none-any.whl, which names no commit"


def test_a_checkout_is_known_by_what_its_remote_has(tmp_path: Path) -> None:
    root = tmp_path / "a checkout"
    root.mkdir()
    noted: dict[str, object] = {"url": root.as_uri(), "dir_info": {"editable": True}}
    assert "no remote called origin" in str(source_of(noted))
    fake.git(root, "init", "--quiet", "--initial-branch=main")
    fake.commit(root, "First", {"a": "1"})
    assert "no remote called origin" in str(source_of(noted))
    fake.git(root, "remote", "add", "origin", "git@git.example.org:acme/bandwatch.git")
    sha = fake.git(root, "rev-parse", "HEAD").strip()
    assert source_of(noted) == (
        f"commit {sha[:12]} of {root} is on no branch of its remote: push it"
    )
    fake.git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert source_of(noted) == Source("https://git.example.org/acme/bandwatch", sha)


def test_this_very_installation_has_an_answer() -> None:
    assert known_source()
