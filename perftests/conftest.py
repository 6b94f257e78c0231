"""What a session that only measures leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_OWN_TESTS = Path(__file__).parent / "tests"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the harness's own tests out under --benchmark-only, which would skip each of them."""
    only = getattr(config.option, "benchmark_only", False)
    return True if only and collection_path == _OWN_TESTS else None
