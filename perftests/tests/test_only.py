"""A session that only measures collects the suite alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("flags", "own"), [((), True), (("--benchmark-only",), False)])
def test_the_harnesss_own_tests_are_no_part_of_what_is_only_measured(
    flags: tuple[str, ...], own: bool
) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "perftests", *flags]
    asked = [*command, "-p", "no:cacheprovider"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert "perftests/test_relu.py" in files
    assert any(file.startswith("perftests/tests/") for file in files) is own
