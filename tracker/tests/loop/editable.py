"""A project whose package lies in a folder of its own and is installed as editable here.

What an installer leaves is played by a folder with .pth files that each interpreter reads at its
start: the `site-packages` of a virtual environment inside the project.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tracker.tests.loop import fake, project

PLACE = ".venv/lib/python/site-packages"
CONFTEST = project.CONFTEST.replace(
    'level = json.loads((HERE / "speeds.json").read_text())[kernel]', "level = edk.LEVEL"
).replace("import pytest\n", "import pytest\nimport edk\n")
IGNORED = project.FILES[".gitignore"] + ".venv/\n.cache/\nbuild/\n"
# What setuptools installs where a path cannot tell all: asked last.
LAST = "sys.meta_path.append(Finder)"
# What scikit-build-core and meson-python install: asked before anything is looked for on the path.
FIRST = "sys.meta_path.insert(0, Finder)"
FINDER = """
import sys
from importlib.util import spec_from_file_location

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return spec_from_file_location(name, {file!r}) if name == "edk" else None

{install}
"""
# The interpreter imports this at its start, as it reads a site-packages.
START = "import site\nsite.addsitedir({place!r})\n"


def make(root: Path, package: str = "src/edk", files: Mapping[str, str] | None = None) -> Path:
    """Make the project: on `main` the package is fast, on `slow` it takes twice as long."""
    root.mkdir(parents=True)
    fake.git(root, "init", "--quiet", "--initial-branch=main")
    common = {**project.FILES, "conftest.py": CONFTEST, ".gitignore": IGNORED, **(files or {})}
    fake.commit(root, "Fast", {**common, f"{package}/__init__.py": "LEVEL = 1.0\n"})
    fake.git(root, "switch", "--quiet", "--create", "slow")
    fake.commit(root, "Slow", {f"{package}/__init__.py": "LEVEL = 2.0\n"})
    return root


def install(root: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str]) -> None:
    """Put files into the project's environment, and have each interpreter that starts use it."""
    place = root / PLACE
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    start = root.parent / "start"
    start.mkdir()
    (start / "sitecustomize.py").write_text(START.format(place=str(place)))
    monkeypatch.setenv("PYTHONPATH", str(start))


def by_path(folder: Path) -> dict[str, str]:
    """Return what an editable install leaves that names a folder."""
    return {"__editable__.edk-0.1.pth": f"{folder}\n"}


def by_finder(package: Path, order: str = LAST) -> dict[str, str]:
    """Return what an editable install leaves that has an import hook."""
    finder = FINDER.format(file=str(package / "__init__.py"), install=order)
    return {"_edk_editable.pth": "import _edk_editable\n", "_edk_editable.py": finder}
