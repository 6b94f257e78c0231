"""Whose processes NVML lists on a real GPU, in a container or not."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import torch

from perftests.harness.session import Session
from perftests.harness.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTEXT = """
import sys, torch
torch.zeros(1, device="cuda")
torch.cuda.synchronize()
if sys.argv[1] == "takes turns":
    from perftests.harness.session import Session
    from perftests.harness.settings import Settings
    Session(Settings()).bench(torch.device("cuda"))
print("there", flush=True)
sys.stdin.read()
"""


@contextmanager
def context(kind: str) -> Iterator[None]:
    """Have a child with a context on the first GPU."""
    with subprocess.Popen(
        [sys.executable, "-c", CONTEXT, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        yield


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_worker_that_takes_turns_is_none_of_the_others_and_a_stranger_is() -> None:
    watch = Session(Settings()).bench(torch.device("cuda", 0)).watch
    if not (watch.ask("nvmlDeviceGetComputeRunningProcesses") or ()):
        pytest.skip("NVML lists no processes here, not even this one")

    def others() -> int | None:
        state = watch.read()
        assert state is not None
        return state.other_processes

    alone = others()
    assert alone is not None
    with context("takes turns"):
        assert others() == alone
        with context("does not"):
            assert others() == alone + 1
