"""The device fixture of the kernels' tests, and the CPU builds made at once rather than in turn."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from kernels import host
from kernels.fused_transform.cuda_impl import SOURCE
from kernels.fused_transform.tests.flavours import host_builds
from kernels.tests.conftest import device

__all__ = ["device"]


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    """Two compilers side by side; each build is kept on disk for the next run."""
    if host.compiler():
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda options: host.compile_library(SOURCE, options), host_builds()))
