"""Which folders are worktrees of a repository, and what in them or installed from them is theirs."""

import json
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from tracker.loop import trees as module
from tracker.loop.trees import Trees, foreign
from tracker.tests.loop import fake

FILES = {"edk/__init__.py": "", "pyproject.toml": "[project]\nname = 'edk'\n"}
ALLOW = ("-c", "protocol.file.allow=always")


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    fake.git(folder, "init", "--quiet", "--initial-branch=main")
    fake.commit(folder, "One", FILES)
    return folder.resolve()


def worktree(of: Path, folder: Path) -> Path:
    fake.git(of, "worktree", "add", "--quiet", "--detach", str(folder))
    return folder.resolve()


def test_the_folder_of_a_bare_repository_is_no_worktree(tmp_path: Path) -> None:
    source, top = repository(tmp_path / "source"), tmp_path / "top"
    fake.git(tmp_path, "clone", "--quiet", "--bare", str(source), str(top / ".git"))
    one, two = (worktree(top, top / name) for name in ("one", "two"))
    found = Trees.of(one)
    assert (found.own, found.others) == (one, (two,))
    assert not foreign(found, {"shared": f"{top}/shared/shared.py"}, [f"{top}/shared"])


def test_a_worktree_that_was_moved_by_hand_is_where_it_is_now(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    moved = worktree(root, root / "trees/was").rename(root / "trees/is")
    assert Trees.of(moved / "edk") == Trees(moved, (root,))


def test_the_worktrees_of_a_submodule_are_where_it_is_checked_out(tmp_path: Path) -> None:
    part, root = repository(tmp_path / "part"), repository(tmp_path / "root")
    fake.git(root, *ALLOW, "submodule", "--quiet", "add", str(part), "part")
    other = worktree(root / "part", tmp_path / "other")
    assert Trees.of(other) == Trees(other, (root / "part",))
    assert Trees.of(root / "part/edk") == Trees(root / "part", (other,))


def test_what_was_cloned_or_started_is_no_source_of_a_worktree(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    own = worktree(root, tmp_path / "own")
    clone = repository(root / "clone")
    built = root / "build"
    origins = {
        "dependency": f"{clone}/dependency/__init__.py",
        "__main__": f"{root}/bin/pytest",
        "built": f"{built}/built.py",
    }
    assert set(foreign(Trees.of(own), origins, [str(clone), f"{root}/bin", str(built)])) == {
        "built"
    }


@pytest.mark.parametrize(
    ("source", "name", "file", "mine"),
    [
        ("", "edk", "edk/__init__.py", True),
        ("dist/edk-1.whl", "edk", "edk/_C.py", True),
        ("dist/other-1.whl", "other", "edk/__init__.py", True),  # its files are the project's
        ("wheels/flash-1.whl", "flash", "flash/__init__.py", False),
        ("clone", "flash", "flash/__init__.py", False),
    ],
)
def test_a_copy_is_a_worktrees_own_where_that_was_built_and_not_where_it_was_kept(
    source: str, name: str, file: str, mine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "root")
    repository(root / "clone")
    own = worktree(root, tmp_path / "own")
    (own / "pyproject.toml").unlink()  # else known by its name alone
    facts = tmp_path / "env/site-packages/found-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (facts / "RECORD").write_text(f"{file},,\n")
    (facts / "direct_url.json").write_text(json.dumps({"url": (root / source).as_uri()}))
    monkeypatch.setattr(module, "_distributions", lambda: (PathDistribution(facts),))
    copies = {(facts.parent / file).resolve()} if mine else set()
    assert Trees.of(own).copies() == copies
    assert Trees.of(own).copies_of_others() == dict.fromkeys(copies, root)
    assert Trees.of(root).copies_of_others() == {}
