"""Where a worktree's packages are looked for."""

import json
import sys
from importlib.metadata import PathDistribution
from pathlib import Path
from types import ModuleType

import pytest

from tracker.loop import trees as module
from tracker.loop.layout import import_places
from tracker.loop.trees import Trees

# What a project declares, and the folder in which its packages are found by their names.
DECLARED = {
    "setuptools find": ("[tool.setuptools.packages.find]\nwhere = ['lib']", "lib"),
    "setuptools root": ("[tool.setuptools]\npackage-dir = {'' = 'lib'}", "lib"),
    "setuptools package": ("[tool.setuptools]\npackage-dir = {'edk.gpu' = 'lib/edk/gpu'}", "lib"),
    "poetry": ("[tool.poetry]\npackages = [{include = 'edk', from = 'lib'}]", "lib"),
    "hatch packages": ("[tool.hatch.build.targets.wheel]\npackages = ['lib/edk']", "lib"),
    "hatch sources": ("[tool.hatch.build.targets.wheel]\nsources = ['lib']", "lib"),
    "hatch renamed": ("[tool.hatch.build.targets.wheel.sources]\n'lib/edk' = 'edk'", "lib"),
    "hatch dev mode": ("[tool.hatch.build]\ndev-mode-dirs = ['lib']", "lib"),
    "pdm": ("[tool.pdm.build]\npackage-dir = 'lib'", "lib"),
    "scikit-build-core": ("[tool.scikit-build]\nwheel.packages = ['python/edk']", "python"),
    "maturin": ("[tool.maturin]\npython-source = 'python'", "python"),
    "uv": ("[tool.uv.build-backend]\nmodule-root = 'python'", "python"),
}


def make(root: Path, *folders: str) -> Trees:
    for name in ("", *folders):
        (root / name).mkdir(parents=True, exist_ok=True)
    return Trees(root)


def places(trees: Trees) -> list[str]:
    return [str(place.relative_to(trees.own)) for place in import_places(trees)]


@pytest.mark.parametrize("sort", DECLARED)
def test_what_the_project_declares_is_looked_in_after_its_top(tmp_path: Path, sort: str) -> None:
    text, folder = DECLARED[sort]
    trees = make(tmp_path, "lib/edk/gpu", "python/edk")
    (tmp_path / "pyproject.toml").write_text(text)
    assert places(trees) == [".", folder]


@pytest.mark.parametrize("text", ["package_dir =\n  = lib", "package_dir =\n  edk = lib/edk"])
def test_an_old_projects_folder_is_looked_in(tmp_path: Path, text: str) -> None:
    trees = make(tmp_path, "lib/edk")
    (tmp_path / "setup.cfg").write_text(f"[options]\n{text}\n")
    assert places(trees) == [".", "lib"]


def test_src_is_looked_in_though_nobody_declares_it(tmp_path: Path) -> None:
    assert places(make(tmp_path, "src/edk")) == [".", "src"]


@pytest.mark.parametrize("name", ["src/__init__.py", "src/logging.py", "src/types/__init__.py"])
def test_a_src_that_is_a_package_or_hides_the_library_is_not(tmp_path: Path, name: str) -> None:
    trees = make(tmp_path, str(Path(name).parent))
    (tmp_path / name).touch()
    assert places(trees) == ["."]


@pytest.mark.parametrize(
    "text",
    [
        "[tool.setuptools]\npackage-dir = {'' = '../lib'}",
        "[tool.setuptools]\npackage-dir = {'' = '/tmp'}",
        "[tool.setuptools]\npackage-dir = {edk = 'lib/stuff'}",
        "[tool.pdm]\nbuild = 3",
        "[tool.poetry]\npackages = [3]",
        "no TOML",
    ],
)
def test_what_says_nothing_of_use_is_left_out(tmp_path: Path, text: str) -> None:
    trees = make(tmp_path, "lib/stuff")
    (tmp_path / "pyproject.toml").write_text(text)
    assert places(trees) == ["."]


def test_folders_of_the_checkout_on_the_path_are_looked_in_at_the_worktree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    for root in (home, own):
        make(root, "code/edk", "gone", ".venv/lib/site-packages")
    (own / "gone").rmdir()
    entries = [f"{home}/code", f"{home}/gone", f"{home}/.venv/lib/site-packages", "/usr/lib"]
    monkeypatch.setattr(sys, "path", entries)
    assert places(Trees(own, (home,))) == [".", "code"]


def test_what_the_hook_of_an_editable_install_knows_is_looked_in_at_the_worktree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    for root in (home, own):
        make(root, "code/edk/gpu", "more/other", "kept/stuff")
    hook = ModuleType("__editable___edk_finder")
    names = {"edk.gpu": "code/edk/gpu", "other": "more/other/__init__.py", "named": "kept/stuff"}
    vars(hook)["MAPPING"] = {name: str(home / place) for name, place in names.items()}
    finder = type("Finder", (), {"__module__": hook.__name__})
    monkeypatch.setitem(sys.modules, hook.__name__, hook)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    assert places(Trees(own, (home,))) == [".", "code", "more"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A part of the project, installed as a copy: what pip writes down of it."""
    facts = tmp_path / "env/site-packages/edk_part-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: edk-part\nVersion: 1.0\n")
    files = ("part/__init__.py", "part/data.bin", "__editable___edk_part_finder.py")
    (facts / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    address = {"url": f"{(tmp_path / 'home/parts/one').as_uri()}", "dir_info": {}}
    (facts / "direct_url.json").write_text(json.dumps(address))
    found = (PathDistribution(facts),)
    monkeypatch.setattr(module, "_distributions", lambda: found)
    return facts.parent


def test_the_parts_of_a_repository_that_are_installed_are_looked_in_at_the_worktree(
    tmp_path: Path, installed: Path
) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    for root in (home, own):
        make(root, "parts/one/src/part", "parts/two/src")
    assert places(Trees(own, (home,))) == [".", "parts/one", "parts/one/src"]


def test_a_copy_is_known_by_where_it_came_from_and_by_its_name(
    tmp_path: Path, installed: Path
) -> None:
    copied = {installed / "part/__init__.py"}
    home, own = tmp_path / "home", tmp_path / "own"
    make(home, "parts/one")
    make(own)
    assert Trees(own, (home,)).copies() == copied
    assert Trees(own).copies() == set()
    (own / "pyproject.toml").write_text("[project]\nname = 'EDK.part'\n")
    assert Trees(own).copies() == copied
