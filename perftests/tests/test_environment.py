"""What makes results comparable, of a GPU whose NVML answers from a table, and of a CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness import environment
from perftests.harness.environment import (
    cpu_device,
    cpu_name,
    gpu_device,
    gpu_environment,
    gpu_uuid,
    libraries,
)
from perftests.harness.state import Watch
from perftests.tests.fake_nvml import FakeNvml

if TYPE_CHECKING:
    from pathlib import Path


class Nvml(FakeNvml):
    """Answers what an environment asks; `clocks` are those set by the owner, SM and memory."""

    def __init__(self, clocks: tuple[int, int] = (1980, 3201), **given: Any) -> None:
        super().__init__(**given)
        self.clocks = clocks

    def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        which = 0 if arguments[1:] == (self.NVML_CLOCK_SM,) else 1
        known = {
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetEccMode": (1, 0),
            "nvmlDeviceGetMigMode": (0, 1),
            "nvmlDeviceGetApplicationsClock": self.clocks[which],
            "nvmlDeviceGetDefaultApplicationsClock": (1980, 3201)[which],
        }
        return known[name] if name in known else super().answer(name, arguments)


GPU: Any = SimpleNamespace(
    cache_bytes=50 << 20,
    properties=SimpleNamespace(
        name="NVIDIA H200",
        major=9,
        minor=0,
        uuid="abc-1",
        total_memory=150 << 30,
        multi_processor_count=132,
    ),
)


def of(nvml: Nvml | None) -> dict[str, Any]:
    watch = Watch(absent="NVML is absent") if nvml is None else Watch(handle="handle", nvml=nvml)
    return gpu_environment(GPU, watch)


def test_the_environment_of_a_gpu_is_what_is_in_force_not_what_is_pending() -> None:
    found = of(Nvml())
    assert found["gpu_model"] == "NVIDIA H200"
    assert found["compute_capability"] == "9.0"
    assert found["driver"] == "580.65.06"
    assert found["power_limit_w"] == 700.0
    assert (found["ecc"], found["mig"]) == (True, False)
    assert found["clock_policy"] == "default"
    assert found["l2_bytes"] == 50 << 20


@pytest.mark.parametrize("clocks", [(1500, 3201), (1980, 2619)])
def test_clocks_that_the_owner_has_set_are_told(clocks: tuple[int, int]) -> None:
    assert of(Nvml(clocks))["clock_policy"] == f"applications {clocks[0]}/{clocks[1]} MHz"


def test_what_nvml_refuses_is_none_and_refused_clocks_are_the_usual_ones() -> None:
    names = ("EnforcedPowerLimit", "EccMode", "MigMode", "ApplicationsClock")
    refused = {f"nvmlDeviceGet{name}" for name in names} | {"nvmlSystemGetDriverVersion"}
    found = of(Nvml(refused=frozenset(refused)))
    assert found["driver"] is None
    assert (found["power_limit_w"], found["ecc"], found["mig"]) == (None, None, None)
    assert found["clock_policy"] == "default"


def test_without_nvml_its_part_is_none() -> None:
    found = of(None)
    names = ("driver", "power_limit_w", "ecc", "mig", "clock_policy")
    assert [found[name] for name in names] == [None] * 5
    assert found["gpu_model"] == "NVIDIA H200"


@pytest.mark.parametrize("uuid", ["abc-1", "GPU-abc-1"])
def test_a_gpu_goes_by_one_spelling_of_its_uuid(uuid: str) -> None:
    device: Any = SimpleNamespace(properties=SimpleNamespace(uuid=uuid))
    assert gpu_uuid(device) == "GPU-abc-1"
    assert gpu_device(GPU)["uuid"] == "GPU-abc-1"
    device.properties.uuid = "MIG-abc-1"
    assert gpu_uuid(device) == "MIG-abc-1"


def test_a_cpu_is_told_by_a_digest_that_threads_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = tmp_path / "machine-id"
    machine.write_text("0123456789abcdef\n")
    monkeypatch.setattr(environment, "_MACHINE_IDS", (machine,))
    first = cpu_device()["uuid"]
    assert first == cpu_device()["uuid"]
    assert len(first) == len("cpu-") + 16
    assert "0123456789abcdef" not in first
    monkeypatch.setattr(torch, "get_num_threads", lambda: 999)
    other = cpu_device()
    assert other["uuid"] != first
    assert other["multiprocessors"] == 999
    assert other["name"].endswith(", 999 threads")


def test_a_processor_is_named_by_linux_where_that_says(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: A Processor @ 2 GHz\nmodel name\t: Another\n")
    assert cpu_name(info).startswith("A Processor @ 2 GHz, ")
    assert cpu_name(tmp_path / "absent").partition(",")[0]


def test_only_what_is_measured_counts_among_libraries() -> None:
    assert libraries("cpu") == {"torch": torch.__version__.partition("+")[0]} or set(
        libraries("cpu")
    ) == {"torch"}
    assert "numpy" not in libraries("cuda")
