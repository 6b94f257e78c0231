"""The study of several GPUs: shards in threads, planted figures, and what the system reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.harness.state import Watch
from perftests.studies import several_gpus, topology
from perftests.studies.frame import Scope
from perftests.studies.pictures import picture
from perftests.studies.several_gpus import counts
from perftests.studies.several_gpus_report import (
    SCATTERED,
    Sharded,
    draw,
    pair_rows,
    scaling_rows,
    verdict,
)
from perftests.studies.sharding import CpuShards, GpuShards, parts, times
from perftests.studies.topology import Pair, matrix_of, nvlinks, pattern, wrong_words
from perftests.tests import fake_cuda

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CPU = torch.device("cpu")
TOPO = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tSYS\tPIX\t0-47\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\tSYS\t48-95\t1\t\tN/A\n"
    "GPU2\tSYS\tNODE\t X \tSYS\t48-95\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\tSYS\t X\n\nLegend:\n\n  X    = Self\n"
)


def sharded(devices: int, resident_s: float, scattered_s: float = 0.0, **more: Any) -> Sharded:
    scattered = [scattered_s] * 9 if scattered_s else []
    copies = [scattered_s * 0.4] * 9 if scattered_s else []
    return Sharded(devices, [resident_s] * 9, scattered, copies, copies, **more)


def pair(source: int, target: int, **more: Any) -> Pair:
    given: dict[str, Any] = {
        "link": "NV18", "peer_access": True, "nvml_says": "read, write, NVLink", "wrong": 0,
        "rate": 380e9, "both": 740e9, "read_wrong": 0, "read_rate": 350e9, **more,
    }  # fmt: skip
    return Pair(source, target, **given)


def test_on_a_cpu_threads_stand_in_and_the_study_says_so(
    monkeypatch: pytest.MonkeyPatch, validate: Callable[[Any], Any], tmp_path: Path
) -> None:
    monkeypatch.setattr(several_gpus, "SMALL_ELEMENTS", 10_000)
    scope = Scope(Session(Settings(lock_seconds=30)), CPU, True)
    findings = several_gpus.run(scope)
    assert findings.verdict.startswith("There is no GPU here")
    assert [(row["devices"], row["right"]) for row in findings.sections[0].rows] == [
        (1, True), (2, True), (2, True)
    ]  # fmt: skip
    assert "there is no GPU here" in str(findings.sections[1].rows)
    kept = [validate(each)["result"]["case"] for each in scope.kept]
    assert [case["parameters"]["devices"] for case in kept] == [1, 2, 2]
    assert findings.draw is not None
    picture(findings.draw, tmp_path / "gpus.png")


def test_a_shard_that_is_not_computed_or_not_gathered_is_found() -> None:
    shards = CpuShards(10_000, 3)
    shards.compute()
    assert shards.wrong() == 0
    assert shards.gathered_wrong() == 10_000
    shards.scatter()
    shards.compute()
    shards.gather()
    assert shards.gathered_wrong() == 0
    shards.scatter()
    assert shards.wrong() > 0  # nothing was computed since everything was wiped out


def test_parts_cover_everything_once_and_begin_aligned() -> None:
    for count, shards in ((10_000, 3), (1 << 20, 4), (5, 4), (1 << 29, 7)):
        found = parts(count, shards)
        assert len(found) == shards
        assert sum(part.stop - part.start for part in found) == count
        assert all(part.start % 1024 == 0 or part.start == count for part in found)
        assert [part.start for part in found[1:]] == [part.stop for part in found[:-1]]


def test_counts_are_powers_of_two_and_all() -> None:
    assert counts(1) == [1]
    assert counts(2) == [1, 2]
    assert counts(6) == [1, 2, 4, 6]
    assert counts(8) == [1, 2, 4, 8]


def test_efficiency_is_the_speed_up_over_the_devices_and_scattering_pays_late() -> None:
    rows = scaling_rows([sharded(1, 1e-3), sharded(4, 0.25e-3, 5e-3)], 1 << 30)
    resident, scattered = rows[1], rows[2]
    assert resident["speed-up"] == pytest.approx(4)
    assert resident["efficiency"] == pytest.approx(1)
    assert scattered["data"] == SCATTERED
    assert scattered["efficiency"] == pytest.approx(0.05)
    assert scattered["pays after"] == pytest.approx(4e-3 / 0.75e-3)


@pytest.mark.parametrize(
    ("four_s", "said"),
    [
        (0.26e-3, "The claim holds for resident data: 4 GPUs are 3.85 times as fast as one"),
        (0.7e-3, "The claim does not hold even for resident data"),
    ],
)
def test_the_verdict_follows_the_efficiency(four_s: float, said: str) -> None:
    rows = scaling_rows([sharded(1, 1e-3), sharded(4, four_s, 5e-3)], 1 << 30)
    told = verdict(rows, pair_rows([pair(0, 1), pair(1, 0)]), gpus=4)
    assert told.startswith(said)
    assert "scattered and gathered is 5.0 times slower" in told
    assert "reported for 2 of 2 ordered pairs" in told
    assert "proved by a kernel that reads the peer's memory for 2" in told


def test_one_gpu_has_nothing_to_scale_to() -> None:
    told = verdict(scaling_rows([sharded(1, 1e-3)], 1 << 30), [], gpus=1)
    assert told.startswith("Not tested: there is one GPU here")


def test_wrong_elements_leave_nothing_to_judge() -> None:
    rows = scaling_rows([sharded(1, 1e-3), sharded(2, 5e-4, wrong=3)], 1 << 30)
    assert verdict(rows, [], gpus=2).startswith("Not judged")


def test_a_pattern_that_was_lost_or_a_peer_that_was_not_read_is_told() -> None:
    rows = scaling_rows([sharded(1, 1e-3), sharded(2, 5e-4)], 1 << 30)
    lost = pair_rows([pair(0, 1, wrong=7), pair(1, 0)])
    assert "A pattern did not arrive between 0 and 1." in verdict(rows, lost, gpus=2)
    unread = pair(0, 1, read_wrong=None, read_rate=None, unread="it was refused")
    found = pair_rows([unread, pair(1, 0, read_wrong=2)])
    assert found[0]["kernel reads peer"] == "not tried: it was refused"
    assert found[1]["kernel reads peer"] is False
    assert "reads the peer's memory for 0" in verdict(rows, found, gpus=2)


def test_a_pattern_differs_in_every_word_between_seeds_and_a_planted_fault_is_counted() -> None:
    made = pattern(4096, 5, CPU)
    assert made.dtype == torch.int32
    assert made.unique().numel() == 4096
    assert wrong_words(made, 5) == 0
    assert wrong_words(made, 6) == 4096
    made[17] ^= 1
    assert wrong_words(made, 5) == 1


def test_the_links_are_read_from_what_nvidia_smi_prints() -> None:
    assert matrix_of(TOPO) == {
        (0, 1): "NV18", (0, 2): "SYS", (1, 0): "NV18", (1, 2): "NODE", (2, 0): "SYS",
        (2, 1): "NODE",
    }  # fmt: skip
    assert matrix_of("No devices were found\n") == {}


def test_devices_are_matched_with_nvidia_smi_by_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "0, GPU-a\n1, GPU-b\n2, GPU-c\n"
    monkeypatch.setattr(
        topology, "asked", lambda *arguments: TOPO if arguments == ("topo", "-m") else listed
    )
    benches: list[Any] = [
        SimpleNamespace(device=SimpleNamespace(properties=SimpleNamespace(uuid=uuid)))
        for uuid in ("c", "a")
    ]
    assert topology.links(benches) == {(0, 1): "SYS", (1, 0): "SYS"}
    monkeypatch.setattr(topology, "asked", lambda *_: None)
    assert topology.links(benches) == {}


def test_links_that_nvml_refuses_are_not_there() -> None:
    class RefusalError(Exception):
        pass

    class Nvml:
        NVMLError = RefusalError

        def nvmlDeviceGetNvLinkState(self, _handle: object, link: int) -> int:
            if link >= 18:
                raise RefusalError
            return int(link != 3)

        def nvmlDeviceGetNvLinkVersion(self, _handle: object, _link: int) -> int:
            return 6  # NVML_NVLINK_VERSION_4_0

    bench: Any = SimpleNamespace(watch=Watch(handle="h", nvml=Nvml()))
    assert nvlinks(bench) == {"NVLinks up": 17, "version": "4.0"}
    bench.watch = Watch(absent="NVML is absent")
    assert nvlinks(bench) == {"NVLinks up": "NVML is absent"}


def test_nvml_is_asked_for_peer_access_by_number() -> None:
    pynvml = pytest.importorskip("pynvml")
    asked: list[int] = []

    class Nvml:
        NVMLError = pynvml.NVMLError
        NVML_P2P_STATUS_OK = pynvml.NVML_P2P_STATUS_OK

        def nvmlDeviceGetP2PStatus(self, _one: object, _two: object, index: int) -> int:
            asked.append(index)
            return int(pynvml.NVML_P2P_STATUS_OK) if index != 1 else 3

    bench: Any = SimpleNamespace(watch=Watch(handle="h", nvml=Nvml()))
    assert topology.nvml_status(bench, bench) == "read, NVLink"
    assert asked == [0, 1, pynvml.NVML_P2P_CAPS_INDEX_NVLINK]
    bench.watch = Watch(absent="NVML is absent")
    assert topology.nvml_status(bench, bench) == "NVML is absent"


def test_the_picture_of_several_gpus_is_drawn(tmp_path: Path) -> None:
    found = [sharded(1, 1e-3), sharded(2, 5.1e-4, 4e-3), sharded(4, 2.6e-4, 5e-3)]
    pairs = pair_rows([pair(i, j) for i in range(4) for j in range(4) if i != j])
    picture(lambda figure: draw(figure, scaling_rows(found, 1 << 30), pairs), tmp_path / "g.png")
    assert (tmp_path / "g.png").stat().st_size > 10_000


def test_shards_on_several_devices_are_scattered_computed_and_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_cuda.install(monkeypatch)
    shards = GpuShards(10_000, [CPU] * 4)
    shards.compute()
    assert shards.wrong() == 0
    assert 0 < shards.gathered_wrong() <= 10_000
    scattered = times(shards, [shards.scatter, shards.compute, shards.gather])
    assert len(scattered) == 9
    assert shards.wrong() + shards.gathered_wrong() == 0
    monkeypatch.setattr(shards, "gather", lambda: None)
    times(shards, [shards.scatter, shards.compute, shards.gather])
    assert shards.wrong() == 0
    assert shards.gathered_wrong() > 0


@pytest.mark.parametrize("status", [0, 704])
def test_each_two_devices_are_joined_by_copies_and_by_a_kernel_that_reads(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(topology, "asked", lambda *_: None)
    found = list(topology.pairs([fake_cuda.bench(enable_status=status)] * 3, 1 << 12))
    assert [(each.source, each.target) for each in found] == [
        (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)
    ]  # fmt: skip
    assert all(each.wrong == 0 and each.read_wrong == 0 for each in found)
    assert all(each.rate > 0 and each.both > 0 and each.read_rate for each in found)
    assert found[0].nvml_says == "NVML is absent"


def test_a_peer_that_refuses_or_has_no_access_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(topology, "asked", lambda *_: None)
    refused = list(topology.pairs([fake_cuda.bench(enable_status=217)] * 2, 1 << 12))
    assert refused[0].unread == "peer access was refused: status 217"
    fake_cuda.install(monkeypatch, access=False)
    without = list(topology.pairs([fake_cuda.bench()] * 2, 1 << 12))
    assert without[0].read_wrong is None
    assert without[0].unread == "no peer access is reported"


@pytest.mark.gpu
def test_on_gpus_every_pattern_arrives_and_every_shard_is_right(gpu: str) -> None:
    scope = Scope(Session(Settings(lock_seconds=60)), torch.device(gpu, 0), True)
    findings = several_gpus.run(scope)
    assert all(row["right"] for row in findings.sections[0].rows)
    if torch.cuda.device_count() > 1:
        assert all(row["pattern arrived"] for row in findings.sections[1].rows)
    else:
        assert findings.verdict.startswith("Not tested")
