"""A side whose code is of another checkout: made right where that can be, else refused.

The planted fault is how it was: the worktree's top alone was looked in, and nobody asked from where
the code came, so a commit was compared with itself.
"""

from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tracker.errors import ExitCode
from tracker.loop.fresh import PytestMeasure, Task
from tracker.loop.journal import Journal
from tracker.loop.repository import Repository
from tracker.loop.settings import LoopSettings
from tracker.loop.strays import StrayError, refuse_strays
from tracker.loop.trees import Trees, foreign
from tracker.loop.worktrees import Worktrees, worktrees
from tracker.tests.loop import editable, fake, project
from tracker.tests.loop.conftest import Command
from tracker.tests.odd_modules import ODD_MODULES

INSIDE = Path("/nowhere")
FAST, SLOW = 1e-4, 2e-4
TOOL = ".cache/made.py"
# Tools of an environment that lies in the project, and what a library compiled into a cache there.
TOOLS = """
import importlib.util, sys
import tool
spec = importlib.util.spec_from_file_location("made", {made!r})
sys.modules["made"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["made"])
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_ci: None) -> Path:
    """Where the project will be, the working folder of the commands."""
    monkeypatch.delenv("BANDWATCH_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path / "project"


@pytest.fixture
def trees(root: Path) -> Iterator[Worktrees]:
    settings = LoopSettings()
    repository = Repository(root)
    with worktrees(repository, root / ".bandwatch/worktrees", settings) as found:
        yield found


def seconds(root: Path, name: str, **settings: object) -> float:
    """Return how long the package at a commit takes by a process of its own, in a worktree."""
    chosen = LoopSettings(suite=("perf",), **settings)  # type: ignore[arg-type]
    folder = root / ".bandwatch/worktrees"
    with worktrees(Repository(root), folder, chosen) as found:
        tree = found.at(fake.git(root, "rev-parse", name))
        return level(PytestMeasure(chosen), tree, folder / f"{name}.jsonl")


def level(step: PytestMeasure, tree: Path, journal: Path) -> float:
    """Return how long the package takes by a process of its own in a checkout."""
    summary = step(tree, Task((project.RELU,)), journal).envelopes[0].result.summary
    assert summary is not None
    return summary.median_s


def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(folder: Path, order: Path) -> tuple[Path, ...]:
        order.write_text("{}")
        return (folder,)

    monkeypatch.setattr("tracker.loop.fresh.prepare", prepare)


INSTALLED = {
    "a path": lambda root: editable.by_path(root / "src"),
    "a hook that is asked last": lambda root: editable.by_finder(root / "src/edk"),
    "a hook that is asked first": lambda root: editable.by_finder(root / "src/edk", editable.FIRST),
}


@pytest.mark.parametrize("way", INSTALLED)
def test_each_side_measures_its_own_source_whatever_the_install_names(
    root: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    editable.make(root)
    editable.install(root, monkeypatch, INSTALLED[way](root))
    assert seconds(root, "main") == pytest.approx(FAST, rel=0.05)


def test_the_planted_fault_measures_what_is_checked_out_and_not_the_base(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editable.make(root)
    editable.install(root, monkeypatch, editable.by_path(root / "src"))
    as_it_was(monkeypatch)
    assert seconds(root, "main") == pytest.approx(SLOW, rel=0.05)


def test_ab_tells_a_package_in_src_from_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch, bandwatch: Command
) -> None:
    monkeypatch.chdir(editable.make(root))
    editable.install(root, monkeypatch, editable.by_path(root / "src"))
    answer = bandwatch("ab", "main", "--pairs", "2", "-k", "relu")
    assert "-50.00 %" in answer.out
    assert answer.code == ExitCode.REGRESSION


@pytest.mark.slow
def test_the_planted_fault_lets_ab_see_no_change(
    root: Path, monkeypatch: pytest.MonkeyPatch, bandwatch: Command
) -> None:
    monkeypatch.chdir(editable.make(root))
    editable.install(root, monkeypatch, editable.by_path(root / "src"))
    as_it_was(monkeypatch)
    assert bandwatch("ab", "main", "--pairs", "2", "-k", "relu").code == ExitCode.OK


@pytest.fixture
def hidden(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that only the hook of its install finds: its folder has another name."""
    monkeypatch.chdir(editable.make(root, package="code/stuff"))
    editable.install(root, monkeypatch, editable.by_finder(root / "code/stuff"))
    return root


def test_ab_refuses_to_compare_the_working_tree_with_itself(
    hidden: Path, bandwatch: Command
) -> None:
    answer = bandwatch("ab", "main", "--pairs", "2", "-k", "relu")
    assert answer.code == ExitCode.UNFIT
    assert f"edk was imported from {hidden}/code/stuff/__init__.py" in answer.err
    assert "pythonpath of [tool.pytest.ini_options]" in answer.err
    assert "build of [tool.bandwatch.ci]" in answer.err
    assert "no change" not in answer.out


def test_ci_in_turns_is_unfit_and_not_a_first_run(hidden: Path, bandwatch: Command) -> None:
    answer = bandwatch("ci", "--ab", "--base", "main", "-k", "relu")
    assert "edk was imported from" in answer.out
    assert answer.code == ExitCode.UNFIT


def test_backfill_records_nothing_of_another_checkout(hidden: Path, bandwatch: Command) -> None:
    answer = bandwatch("backfill", "main..slow")
    assert "0 of 1 commits measured, 1 skipped" in answer.out
    assert "edk was imported from" in answer.out
    assert answer.code == ExitCode.UNDECIDED


def test_bisect_refuses_ends_that_are_the_same_code(hidden: Path, bandwatch: Command) -> None:
    answer = bandwatch("bisect", project.RELU, "main", "slow")
    assert "edk was imported from" in answer.err
    assert answer.code == ExitCode.UNFIT


def test_what_was_refused_is_measured_once_it_is_found_in_each_checkout(hidden: Path) -> None:
    with pytest.raises(StrayError):
        seconds(hidden, "main")
    build = ("ln", "-s", "stuff", "code/edk")
    arguments = ("-o", "pythonpath=code")
    found = seconds(hidden, "main", build=build, arguments=arguments)
    assert found == pytest.approx(FAST, rel=0.05)


def test_tools_and_caches_inside_the_project_are_no_strays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = root / TOOL
    more = editable.CONFTEST + TOOLS.format(made=str(made))
    editable.make(root, files={"conftest.py": more})
    made.parent.mkdir()
    made.write_text("")
    files = {**editable.by_path(root / "src"), "tool.py": ""}
    editable.install(root, monkeypatch, files)
    assert seconds(root, "main") == pytest.approx(FAST, rel=0.05)


def test_modules_that_wait_to_be_loaded_or_answer_anything_are_left_as_they_are(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"conftest.py": editable.CONFTEST + ODD_MODULES + f"    os.chdir({str(root)!r})\n"}
    editable.make(root, files=files)
    editable.install(root, monkeypatch, editable.by_path(root / "src"))
    assert seconds(root, "main") == pytest.approx(FAST, rel=0.05)


def test_a_users_own_worktree_is_not_measured_with_the_code_of_another(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editable.make(root)
    editable.install(root, monkeypatch, editable.by_path(root / "src"))
    second = root.parent / "second"
    fake.git(root, "worktree", "add", "--quiet", str(second), "main")
    step = PytestMeasure(LoopSettings(suite=("perf",)))
    with pytest.raises(StrayError, match=r"edk was imported from .*/project/src/edk"):
        step(second, Task((project.RELU,)), root.parent / "run.jsonl")
    assert step(root, Task((project.RELU,)), root.parent / "run.jsonl").envelopes


def test_a_users_own_checkout_is_measured_as_installed_and_else_from_its_src(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editable.make(root)
    step = PytestMeasure(LoopSettings(suite=("perf",)))
    before, after = root.parent / "before.jsonl", root.parent / "after.jsonl"
    assert level(step, root, before) == pytest.approx(SLOW, rel=0.05)
    editable.install(root, monkeypatch, {"edk/__init__.py": "LEVEL = 4.0\n"})
    assert level(step, root, after) == pytest.approx(2 * SLOW, rel=0.05)


def test_what_is_built_counts_and_what_is_cached_does_not(root: Path, trees: Worktrees) -> None:
    editable.make(root)
    own = Trees.of(trees.at(fake.git(root, "rev-parse", "main")))
    for name in ("src/edk/_C.so", "build/edk_C.so", "deps/a.dist-info/x", "deps/a.py", TOOL):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    origins = {
        "edk": f"{own.own}/src/edk/__init__.py",
        "edk._C": f"{root}/src/edk/_C.so",  # ignored or not, beside source
        "edk_C": f"{root}/build/edk_C.so",  # found by its name on the path
        "a": f"{root}/deps/a.py",  # found by its name where something was installed into
        "made": f"{root}/{TOOL}",  # loaded from a place that is not on the path
        "b": f"{root}/.venv/lib/python/site-packages/b.py",
    }
    found = foreign(own, origins, [f"{root}/build", f"{root}/deps"])
    assert set(found) == {"edk._C", "edk_C"}


def test_a_submodules_source_counts_and_a_repository_of_its_own_does_not(
    root: Path, tmp_path: Path
) -> None:
    editable.make(root)
    editable.make(tmp_path / "part")
    allow = ("-c", "protocol.file.allow=always")
    fake.git(root, *allow, "submodule", "--quiet", "add", str(tmp_path / "part"), "part")
    fake.git(root, "commit", "--quiet", "-m", "A part")
    editable.make(root / ".cache/other")
    own = Trees(tmp_path / "elsewhere", (root,))
    origins = {
        "edk": f"{root}/part/src/edk/__init__.py",
        "other": f"{root}/.cache/other/src/edk/__init__.py",
    }
    assert set(foreign(own, origins, [])) == {"edk"}


def test_a_copy_that_was_installed_is_refused_but_for_what_a_lone_build_compiled(
    root: Path, trees: Worktrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    editable.make(root)
    tree = trees.at(fake.git(root, "rev-parse", "main"))
    python, compiled = Path("/env/edk/__init__.py"), Path(f"/env/edk/_C{EXTENSION_SUFFIXES[0]}")
    monkeypatch.setattr(Trees, "copies", lambda self: frozenset({python, compiled}))
    both = Journal(origins={"edk": str(python), "edk._C": str(compiled)})
    for build in ((), ("make",)):
        with pytest.raises(StrayError, match=r"edk was imported from /env/edk/__init__.py"):
            refuse_strays(both, tree, INSIDE, build)
    alone = Journal(origins={"edk._C": str(compiled)})
    with pytest.raises(StrayError, match=r"edk._C"):
        refuse_strays(alone, tree, INSIDE, ())
    refuse_strays(alone, tree, INSIDE, ("make",))
    trees.at(fake.git(root, "rev-parse", "slow"))
    with pytest.raises(StrayError, match=r"edk._C"):  # one file for both sides
        refuse_strays(alone, tree, INSIDE, ("make",))
    refuse_strays(both, tree, Path("/env"), ())  # what we brought along ourselves
    refuse_strays(both, root, INSIDE, ())  # the user's own checkout, as it is installed
