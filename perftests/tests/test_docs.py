"""What docs/how-it-measures.md shows on someone's own kernel runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perftests.harness.allocations import cpu_allocation

pytest_plugins = ["pytester"]
PAGE = Path(__file__).parents[2] / "docs" / "how-it-measures.md"


@pytest.fixture(scope="module", autouse=True)
def _torch_is_imported() -> None:
    """Import what an inner run needs: its own imports are undone, torch's cannot be."""
    cpu_allocation(lambda: None)


def example() -> str:
    found = re.search(r"```python\n(.+?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_short() -> None:
    assert len(example().splitlines()) < 20


def test_the_example_checks_and_times_a_kernel(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(example())
    flags = ("-p", "no:cacheprovider", "--bandwatch-device=cpu", "--bandwatch-max-seconds=0.1")
    result = pytester.runpytest(*flags, "--benchmark-enable", "--benchmark-columns=median")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_axpy*"])


def test_the_example_notices_a_wrong_kernel(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(example().replace("alpha=2.0", "alpha=2.0001"))
    result = pytester.runpytest("-p", "no:cacheprovider", "--bandwatch-device=cpu")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the chain of trust broke: compare with the reference: *"])
