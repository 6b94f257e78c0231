"""`pytest --benchmark` beside another worktree whose code was installed: nothing is recorded."""

import json
from pathlib import Path

import pytest

from tracker.tests.odd_modules import ODD_MODULES
from tracker.tests.sandbox import Sandbox, alone, envelope

pytest_plugins = ("pytester",)


@pytest.fixture
def sandbox(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A project with a package in `src`."""
    made = alone(pytester, monkeypatch, columns=400)
    package = made.folder / "src/edk/__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("SCALE = 1\n")
    made.commit()
    made.records(relu=envelope())
    return made


@pytest.fixture
def other(sandbox: Sandbox) -> Path:
    """Another worktree of the project."""
    folder = sandbox.folder.with_name(f"{sandbox.folder.name}-other")
    sandbox.git("worktree", "add", "--quiet", "--detach", str(folder))
    return folder.resolve()


def run(sandbox: Sandbox, *arguments: str) -> tuple[int, str]:
    result = sandbox.run("--benchmark", *arguments, subprocess=True)
    return int(result.ret), f"{result.stdout}{result.stderr}"


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have the package found in a worktree, as an editable install would."""
    monkeypatch.setenv("PYTHONPATH", str(folder / "src"))


def test_it_is_refused_before_anything_is_measured(
    sandbox: Sandbox, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, other)
    (sandbox.folder / "suite/conftest.py").write_text("import edk\n")
    sandbox.records({"relu": "print('measured')"}, relu=envelope())
    code, text = run(sandbox, "-s")
    assert code == 4
    assert f"cannot record what is measured in {sandbox.folder.name}: edk was imported from" in text
    assert f"{other}/src/edk/__init__.py, another worktree's and not this one's" in text
    assert "name the folder of its packages in pythonpath" in text
    assert "or install that worktree" in text
    assert "measured\n" not in text
    assert text.count("another worktree's") == 1
    assert not sandbox.stored()


@pytest.mark.parametrize("arguments", [(), ("-n", "1")], ids=["alone", "a parallel worker"])
def test_what_a_test_alone_imports_is_refused_at_the_end(
    arguments: tuple[str, ...], sandbox: Sandbox, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, other)
    sandbox.records({"relu": "import edk"}, relu=envelope())
    code, text = run(sandbox, *arguments)
    assert code == 4
    assert "1 passed" in text
    assert f"edk was imported from {other}" in text
    assert not sandbox.stored()


def test_what_a_parallel_worker_imports_before_it_crashes_is_refused(
    sandbox: Sandbox, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, other)
    crashes = "import os; os._exit(3)"
    sandbox.records({"a": "import edk", "b": crashes}, a=envelope(), b=envelope())
    code, text = run(sandbox, "-n", "1", "--max-worker-restart=0")
    assert code != 0
    assert "1 passed" in text
    assert f"edk was imported from {other}" in text
    assert not sandbox.stored()


def test_a_failed_test_says_more_and_nothing_is_recorded_either(
    sandbox: Sandbox, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, other)
    sandbox.records({"relu": "import edk; assert not edk.SCALE"}, relu=envelope())
    code, text = run(sandbox)
    assert code == 1
    assert "another worktree's" in text
    assert not sandbox.stored()


def test_a_copy_that_was_installed_from_another_worktree_is_refused(
    sandbox: Sandbox, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sandbox.folder.with_name(f"{sandbox.folder.name}-env") / "site-packages"
    facts = place / "edk-1.dist-info"
    facts.mkdir(parents=True)
    (place / "edk.py").write_text("SCALE = 1\n")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: edk\nVersion: 1\n")
    (facts / "RECORD").write_text("edk.py,,\n")
    monkeypatch.setenv("PYTHONPATH", str(place))
    sandbox.records({"relu": "import edk"}, relu=envelope())
    for source, expected in ((other, 4), (sandbox.folder, 0)):
        (facts / "direct_url.json").write_text(json.dumps({"url": source.as_uri()}))
        code, text = run(sandbox)
        assert code == expected, text
        assert (f"edk.py, installed from {other}, another worktree's" in text) == bool(expected)


def test_modules_that_wait_to_be_loaded_or_answer_anything_are_left_as_they_are(
    sandbox: Sandbox, other: Path
) -> None:
    (sandbox.folder / "suite/conftest.py").write_text(
        f"{ODD_MODULES}    os.chdir({str(other)!r})\n"
    )
    code, text = run(sandbox, "--rootdir", str(sandbox.folder))
    assert code == 0, text
    assert len(sandbox.stored()) == 1


@pytest.mark.parametrize("arguments", [(), ("-n", "1")])
def test_ones_own_code_is_recorded_beside_other_worktrees(
    arguments: tuple[str, ...], sandbox: Sandbox, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert other.is_dir()
    installed(monkeypatch, sandbox.folder)
    (sandbox.folder / "suite/conftest.py").write_text("import edk\n")
    code, text = run(sandbox, *arguments)
    assert code == 0, text
    assert len(sandbox.stored()) == 1
