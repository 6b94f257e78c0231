"""Install a wheel into an environment of its own and fail when it brings too much or too little.

The wheel carries tracker, dashboard and the perftests plugin and harness. It never carries
`kernels`, a name that an unrelated distribution owns, and never a test.
"""

# ruff: noqa: INP001 - GitHub runs this file where it lies; it is in no package.
import argparse
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

WANTED = (
    "tracker/cli/main.py",
    "tracker/record/schema-1.json",
    "tracker/store/migrations/env.py",
    "perftests/plugin.py",
    "dashboard/app.py",
)
PACKAGES = frozenset({"tracker", "perftests", "dashboard"})


def complaints(names: list[str], distribution: str, version: str) -> list[str]:
    """Return what is wrong with a wheel of these files, given its file name."""
    found = [f"the wheel lacks {name}" for name in WANTED if name not in names]
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    found += [f"the wheel brings {top}, which is not ours" for top in sorted(tops - PACKAGES)]
    found += [f"the wheel brings the test {name}" for name in names if _is_test(name)]
    if version and distribution.split("-")[1] != version.removeprefix("v"):
        found.append(f"the wheel is {distribution}, expected version {version}")
    return found


def _is_test(name: str) -> bool:
    parts = name.split("/")
    return "tests" in parts or parts[-1] == "conftest.py" or parts[-1].startswith("test_")


def find_wheel(path: Path) -> Path:
    """Return the wheel that `path` is or holds; exit where there is not exactly one."""
    found = [path] if path.is_file() else sorted(path.glob("*.whl"))
    if len(found) != 1:
        sys.exit(f"cannot check the wheel: {len(found)} wheels in {path}, expected one")
    return found[0]


def try_out(wheel: Path, constraints: Path) -> list[str]:
    """Return what goes wrong when the wheel is installed and its command is called elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        python = home / "venv" / "bin" / "python"
        install = ("-m", "pip", "install", "--quiet", "--constraint", str(constraints.resolve()))
        calls = (
            (str(python), *install, str(wheel.resolve())),
            (str(python), "-c", "import tracker.pytest_plugin, tracker.queries"),
            (str(python), "-c", _REFUSE_KERNELS),
            (str(home / "venv" / "bin" / "bandwatch"), "--version"),
            (str(home / "venv" / "bin" / "bandwatch"), "--help"),
        )
        for call in calls:
            done = subprocess.run(call, cwd=home, capture_output=True, text=True, check=False)
            if done.returncode:
                shown = " ".join(call[1:])
                return [f"`{shown}` exits {done.returncode}: {done.stderr.strip()[-2000:]}"]
    return []


_REFUSE_KERNELS = (
    "import importlib.util, sys; sys.exit('kernels' if importlib.util.find_spec('kernels') else 0)"
)


def main() -> None:
    """Check the wheel that the arguments name; exit 1 with every complaint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--constraints", type=Path, required=True)
    parser.add_argument("--version", default="")
    options = parser.parse_args()
    wheel = find_wheel(options.wheel)
    with zipfile.ZipFile(wheel) as archive:
        found = complaints(archive.namelist(), wheel.name, options.version)
    found = found or try_out(wheel, options.constraints)
    for complaint in found:
        print(f"::error::{complaint}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
