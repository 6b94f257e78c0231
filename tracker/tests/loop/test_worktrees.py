from pathlib import Path

import pytest

from tracker.errors import ConfigError, GitError
from tracker.loop.repository import Repository
from tracker.loop.settings import LoopSettings, read_loop_settings
from tracker.loop.worktrees import BuildError, worktrees
from tracker.tests.loop import fake


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fake.repository(tmp_path / "project", [{"a": 1.0}, {"a": 2.0}, {"a": 3.0}])
    return tmp_path / "project"


def shas(root: Path) -> list[str]:
    return fake.git(root, "rev-list", "--reverse", "HEAD").split()


def test_commits_stand_side_by_side_and_are_gone_at_the_end(root: Path, tmp_path: Path) -> None:
    first, second, _ = shas(root)
    with worktrees(Repository(root), tmp_path / "trees", LoopSettings()) as trees:
        assert (trees.at(first) / "number.txt").read_text() == "0"
        assert (trees.at(second) / "number.txt").read_text() == "1"
        assert len(trees.at(first).name) == len(trees.at(second).name)
    assert list((tmp_path / "trees").iterdir()) == []
    assert len(fake.git(root, "worktree", "list").splitlines()) == 1


def test_a_worktree_that_a_killed_run_left_is_made_anew(root: Path, tmp_path: Path) -> None:
    sha = shas(root)[0]
    left = worktrees(Repository(root), tmp_path / "trees", LoopSettings()).__enter__()
    (left.at(sha) / "number.txt").write_text("changed")
    with worktrees(Repository(root), tmp_path / "trees", LoopSettings()) as trees:
        assert (trees.at(sha) / "number.txt").read_text() == "0"


def test_each_commit_is_built_once(root: Path, tmp_path: Path) -> None:
    settings = LoopSettings(build=("sh", "-c", "echo x >> built"))
    with worktrees(Repository(root), tmp_path / "trees", settings) as trees:
        for _ in range(3):
            path = trees.at(shas(root)[0])
        assert (path / "built").read_text() == "x\n"


def test_commits_that_are_prepared_together_build_at_the_same_time(
    root: Path, tmp_path: Path
) -> None:
    # Each build waits until both have begun; the one of the second commit fails then.
    wait = f"touch {tmp_path}/$(cat number.txt); while ! [ -e {tmp_path}/0 -a -e {tmp_path}/1 ]; do sleep 0.05; done"
    settings = LoopSettings(
        build=("sh", "-c", f"{wait}; [ $(cat number.txt) = 0 ]"), time_limit_s=20.0
    )
    first, second, _ = shas(root)
    with worktrees(Repository(root), tmp_path / "trees", settings) as trees:
        trees.prepare((first, second))
        assert trees.at(first).is_dir()
        with pytest.raises(BuildError, match="exits 1"):
            trees.at(second)


def test_a_commit_that_does_not_build_is_tried_once_and_says_why(
    root: Path, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    settings = LoopSettings(build=("sh", "-c", f"echo x >> {count}; echo no such header; exit 3"))
    with worktrees(Repository(root), tmp_path / "trees", settings) as trees:
        for _ in range(2):
            with pytest.raises(BuildError, match="exits 3: no such header"):
                trees.at(shas(root)[0])
    assert count.read_text() == "x\n"


def test_a_build_command_that_does_not_exist_is_a_build_error(root: Path, tmp_path: Path) -> None:
    settings = LoopSettings(build=("no-such-command",))
    with (
        worktrees(Repository(root), tmp_path / "trees", settings) as trees,
        pytest.raises(BuildError, match="No such file"),
    ):
        trees.at(shas(root)[0])


def test_a_build_takes_no_longer_than_allowed(root: Path, tmp_path: Path) -> None:
    settings = LoopSettings(build=("sleep", "60"), time_limit_s=0.5)
    with (
        worktrees(Repository(root), tmp_path / "trees", settings) as trees,
        pytest.raises(BuildError, match="took too long"),
    ):
        trees.at(shas(root)[0])


def test_no_hook_of_the_project_runs(root: Path, tmp_path: Path) -> None:
    hook = root / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    with worktrees(Repository(root), tmp_path / "trees", LoopSettings()) as trees:
        trees.at(shas(root)[0])
    assert not (tmp_path / "ran").exists()


def test_a_caller_that_is_a_hook_does_not_confuse_git(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert Repository(root).resolve("HEAD") == shas_by_hand(root)


def shas_by_hand(root: Path) -> str:
    return (root / ".git/refs/heads/main").read_text().strip()


def test_a_line_is_oldest_first_and_refuses_the_wrong_order(root: Path) -> None:
    first, second, third = shas(root)
    assert Repository(root).line(first, third) == (second, third)
    with pytest.raises(GitError, match="give the older one first"):
        Repository(root).line(third, first)


def test_two_branches_are_no_line_and_their_fork_is_named(root: Path) -> None:
    first, second, _ = shas(root)
    fake.git(root, "switch", "--quiet", "--create", "topic", first)
    topic = fake.commit(root, "Topic", {"topic.txt": "x"})
    with pytest.raises(GitError, match=f"both left the same line at {first[:12]}: give that one"):
        Repository(root).line(topic, second)
    fake.git(root, "switch", "--quiet", "--orphan", "lone")
    lone = fake.commit(root, "Lone", {"lone.txt": "x"})
    with pytest.raises(GitError, match="no commit in common"):
        Repository(root).line(lone, second)


@pytest.mark.parametrize("name", ["--output=/tmp/x", "no-such-branch", "", "main:number.txt"])
def test_names_that_are_no_commit_are_refused(root: Path, name: str) -> None:
    with pytest.raises(GitError):
        Repository(root).resolve(name)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.bandwatch.ci]\nbuild = 'make'\n", "a list of words"),
        ("[tool.bandwatch.ci]\nbuilt = []\n", "unknown key 'built'"),
        ("[tool.bandwatch.ci]\ntime_limit_s = 0\n", "expected seconds"),
        ("[tool.bandwatch]\nci = 3\n", "expected a table"),
    ],
)
def test_settings_without_a_meaning_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        read_loop_settings(tmp_path)


def test_settings_are_read(tmp_path: Path) -> None:
    text = '[tool.bandwatch.ci]\nbuild = ["make", "x"]\narguments = ["-x"]\ntime_limit_s = 60\n'
    (tmp_path / "pyproject.toml").write_text(text)
    found = read_loop_settings(tmp_path, ("perf",))
    assert found == LoopSettings(("perf",), ("make", "x"), ("-x",), 60.0)
