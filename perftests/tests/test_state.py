"""Readings of the device's state, by an NVML that answers, refuses or is absent."""

from __future__ import annotations

import os
import sys

import pytest

from perftests.harness.state import State, Watch, slowing_reasons, watch_device
from perftests.tests.fake_nvml import FakeNvml


def watch(nvml: FakeNvml) -> Watch:
    return Watch(handle="handle", nvml=nvml)


def test_a_reading_is_in_base_units() -> None:
    assert watch(FakeNvml(mask=0x4 | 0x1)).read() == State(
        sm_clock_hz=1.98e9,
        memory_clock_hz=3.201e9,
        temperature_c=41.0,
        power_w=123.456,
        throttle_reasons=("gpu_idle", "sw_power_cap"),
        other_processes=0,
    )


def test_nothing_is_ever_set() -> None:
    nvml = FakeNvml()
    watch(nvml).read()
    assert nvml.calls
    assert all(name.startswith("nvmlDeviceGet") for name in nvml.calls)


@pytest.mark.parametrize(
    ("pids", "others"),
    [
        ((), 0),
        ((os.getpid(),), 0),
        ((os.getpid(), 1), 1),
        ((7,), 0),  # a container: the one process listed is this one under another number
        ((7, 8), 1),
    ],
)
def test_other_processes_are_counted(pids: tuple[int, ...], others: int) -> None:
    state = watch(FakeNvml(pids=pids)).read()
    assert state is not None
    assert state.other_processes == others


def test_a_refusal_leaves_none_and_its_reason_and_is_not_asked_again() -> None:
    nvml = FakeNvml(refused=frozenset({"nvmlDeviceGetPowerUsage"}))
    seen = watch(nvml)
    for _ in range(2):
        state = seen.read()
        assert state is not None
        assert state.power_w is None
        assert state.temperature_c == 41.0
    assert seen.refused == {"power_w": "nvmlDeviceGetPowerUsage: Insufficient Permissions"}
    assert nvml.calls.count("nvmlDeviceGetPowerUsage") == 1


def test_an_older_driver_is_asked_for_throttle_reasons_by_their_older_name() -> None:
    newer = frozenset({"nvmlDeviceGetCurrentClocksEventReasons"})
    seen = watch(FakeNvml(mask=0x40, refused=newer))
    state = seen.read()
    assert state is not None
    assert state.throttle_reasons == ("hw_thermal_slowdown",)
    assert seen.refused == {}


def test_what_no_reading_could_tell_is_one_line_that_says_what_to_do() -> None:
    both = frozenset(f"nvmlDeviceGetCurrentClocks{name}Reasons" for name in ("Event", "Throttle"))
    processes = frozenset({"nvmlDeviceGetComputeRunningProcesses"})
    seen = watch(FakeNvml(refused=both | processes))
    assert seen.unread() is None, "nothing was asked yet"
    seen.read()
    line = seen.unread()
    assert line is not None
    assert line.startswith("NVML refused throttle_reasons, other_processes (nvmlDevice")
    assert "slowed itself or was shared is not fully known: measure as a user who may" in line
    assert "\n" not in line


def test_a_refusal_that_hides_no_disturbance_does_not_claim_one() -> None:
    seen = watch(FakeNvml(refused=frozenset({"nvmlDeviceGetPowerUsage"})))
    seen.read()
    line = seen.unread()
    assert line is not None
    assert line.startswith("NVML refused power_w (")
    assert "not fully known" not in line


def test_a_fact_that_a_device_does_not_have_is_no_unread_state() -> None:
    seen = watch(FakeNvml(refused=frozenset({"nvmlDeviceGetMigMode"})))
    seen.read()
    assert seen.ask("nvmlDeviceGetMigMode") is None
    assert seen.unread() is None


def test_a_drivers_version_is_text_or_none() -> None:
    name = "nvmlSystemGetDriverVersion"
    assert watch(FakeNvml()).driver_version() == "580.65.06"
    assert watch(FakeNvml(refused=frozenset({name}))).driver_version() is None
    assert Watch(absent="NVML is absent").driver_version() is None


@pytest.mark.parametrize("uuid", ["abc", "GPU-abc"])
def test_a_device_is_found_by_its_uuid(uuid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    found = watch_device(uuid)
    assert found.handle == "handle"
    assert found.absent is None


def test_an_unknown_uuid_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    unknown = watch_device("xyz")
    assert unknown.absent == "NVML knows no device with UUID xyz"
    assert "nvidia-ml-py" not in str(unknown.unread()), "that is there"


def test_a_missing_package_or_driver_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(refused=frozenset({"nvmlInit"})))
    assert watch_device("abc").absent == "NVML is absent: nvmlInit: Insufficient Permissions"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    absent = watch_device("abc")
    assert absent.absent == "NVML is absent: nvidia-ml-py is not installed"
    assert absent.read() is None


def test_only_slowing_reasons_make_a_window_unfit() -> None:
    idle = State(throttle_reasons=("gpu_idle", "applications_clocks"))
    hot = State(throttle_reasons=("hw_thermal_slowdown", "gpu_idle"))
    assert slowing_reasons([None, idle]) == ()
    assert slowing_reasons([idle, hot, None]) == ("hw_thermal_slowdown",)
