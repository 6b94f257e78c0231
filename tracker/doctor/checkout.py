"""Whether the suite that would be measured is this checkout's."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tracker.doctor.finding import Finding, Level

AREA = "suite"
SUITE = "kernels"


def check_kernels(root: Path, origin: Path | None = None, *, suite: Sequence[str] = ()) -> Finding:
    """Return whether the importable `kernels` lies in `root`, without importing it.

    An unrelated distribution installs a package of that name: measuring it would measure nothing
    of ours. Another project measures what its settings name as its `suite`, and needs none of it.
    """
    here = root / SUITE
    own = [path for path in (root / name for name in suite) if path.exists()]
    if own and not (here / "registry.py").is_file():
        return Finding(AREA, "tests", Level.OK, ", ".join(map(str, own)))
    found = origin or kernels_folder()
    if found is None:
        if here.is_dir():
            return Finding(
                AREA,
                SUITE,
                Level.FAIL,
                f"{here} cannot be imported",
                f"run from {root}, or install the checkout: pip install -e {root}",
            )
        return Finding(
            AREA,
            SUITE,
            Level.FAIL,
            "no suite here: this machine can record and show results, not measure",
            "change to a checkout of the project, or make your own ready: bandwatch init",
        )
    if found.resolve() != here.resolve():
        return Finding(
            AREA,
            SUITE,
            Level.FAIL,
            f"the importable `{SUITE}` is {found}, not this checkout's {here}",
            f"uninstall the other one (pip uninstall {SUITE}) or put {root} first on the path",
        )
    return Finding(AREA, SUITE, Level.OK, str(found))


def kernels_folder() -> Path | None:
    """Return the folder of the importable `kernels`, None when there is none."""
    try:
        spec = find_spec(SUITE)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec else []
    if places:
        return Path(places[0])
    return Path(spec.origin) if spec and spec.origin else None
