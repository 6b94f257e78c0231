"""The GPU model of a session, told to pytest-benchmark: it compares whatever has a test's name.

Times of two models have nothing to do with each other, and pytest-benchmark alone would only warn,
of CPUs. Boards of one model are compared, as everywhere here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.errors import HarnessError
from perftests.options import timing_enabled

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEY = "gpu_model"


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(
    config: pytest.Config, machine_info: dict[str, Any]
) -> None:
    """Name the GPU beside the CPU."""
    model = gpu_model(config) if timing_enabled(config) else None
    if model:
        machine_info[_KEY] = model


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_compare_machine_info(
    machine_info: Mapping[str, Any], compared_benchmark: Mapping[str, Any]
) -> None:
    """Refuse to compare with what was measured on another model."""
    ours, theirs = machine_info.get(_KEY), compared_benchmark["machine_info"].get(_KEY)
    if ours and theirs and ours != theirs:
        raise pytest.UsageError(
            f"cannot compare: the saved benchmarks were measured on {theirs}, this session "
            f"measures on {ours}; name some of the same GPU model with --benchmark-compare"
        )


def gpu_model(config: pytest.Config) -> str | None:
    """Return the model of the GPU that the session measures on, None for a CPU.

    It is asked before anything is measured where benchmarks are to be compared.
    """
    import torch

    from perftests.harness.session import choose_device

    try:
        device = choose_device(config.getoption("--bandwatch-device"))
    except HarnessError:  # told when something is measured
        return None
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None
