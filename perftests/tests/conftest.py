"""Fixtures of the harness's tests: sessions with short limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.session import Session
from perftests.harness.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = Path(__file__).parents[2] / "tracker" / "record" / "schema-1.json"


@pytest.fixture(autouse=True)
def outside_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let inner runs of pytest time even where the outer one runs in a worker of xdist."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture
def quick_session() -> Session:
    """A session that times, for as short a time as makes sense."""
    return Session(Settings(max_seconds=0.02, max_samples=8, lock_seconds=30))


@pytest.fixture
def check_session() -> Session:
    """A session that checks only."""
    return Session(Settings(timing=False, lock_seconds=30))


@pytest.fixture(scope="session")
def validate() -> Callable[[Any], Any]:
    """The record schema's validator."""
    fastjsonschema = pytest.importorskip("fastjsonschema")
    compiled: Callable[[Any], Any] = fastjsonschema.compile(json.loads(SCHEMA.read_text()))
    return compiled


@pytest.fixture
def gpu() -> str:
    """The device name of a GPU, or a skip with the reason."""
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU here")
    pytest.importorskip("cupy", reason="CuPy is not installed")
    return "cuda"
