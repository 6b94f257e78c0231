"""A tensor over several GPUs: how it scales, and how the GPUs are joined."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch

from perftests.studies.frame import Findings, Scope, Study, attempted, measured_rows, missing
from perftests.studies.kept import Timed, keep
from perftests.studies.several_gpus_report import (
    PAIR_UNITS,
    RESIDENT,
    SCATTERED,
    UNITS,
    Sharded,
    draw,
    pair_rows,
    scaling_rows,
    verdict,
)
from perftests.studies.sharding import ROUNDS, CpuShards, GpuShards, Shards, times
from perftests.studies.tables import Row, Section
from perftests.studies.topology import PATTERN_BYTES, SMALL_PATTERN_BYTES, nvlinks, pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.session import Bench

ELEMENTS, SMALL_ELEMENTS = 1 << 29, 1 << 20
CPU_THREADS = (1, 2)
CLAIM = (
    "A tensor split over four GPUs with a stream each is computed by all of them at once; peer-to-"
    "peer copies, the topology and where the memory lies decide what that brings. Source: the "
    'article "Elementwise optimisation in practice" (ReLU), which publishes no figure for it.'
)


def run(scope: Scope) -> Findings:
    """Measure sharded ReLU on one device up to all, and what joins each two GPUs."""
    if not scope.gpu:
        found = [_sharded(CpuShards(SMALL_ELEMENTS, n), n) for n in CPU_THREADS]
        absent = missing("Topology and peers", "there is no GPU here; the shards are in threads")
        return study(scope, found, SMALL_ELEMENTS, [absent], gpus=0)
    count = torch.cuda.device_count()
    first = scope.device.index or 0
    order = [first, *(i for i in range(count) if i != first)]
    benches = [scope.session.bench(torch.device("cuda", index)) for index in order]
    elements = SMALL_ELEMENTS if scope.small else ELEMENTS
    with ExitStack() as stack:
        for bench in benches:
            stack.enter_context(bench.lock.alone())
        stack.enter_context(torch.cuda.device(benches[0].device.device))
        found = _scaled(benches, elements)
        joined = attempted("How the GPUs are joined", lambda: _joined(scope, benches))
    linked = Section("Links of each GPU", "As NVML tells", _linked(benches))
    return study(scope, found, elements, [joined, linked], gpus=count)


def study(
    scope: Scope, found: Sequence[Sharded], elements: int, others: Sequence[Section], *, gpus: int
) -> Findings:
    """Write up what was found. `others` are the sections on what joins the GPUs."""
    for each in found:
        _keep(scope, each, elements)
    scaling = scaling_rows(found, 4 * elements)
    joined = [row for section in others for row in measured_rows(section) if "copy" in row]
    sections = (Section("Scaling", _how(elements, gpus), scaling, UNITS), *others)
    told = verdict(scaling, joined, gpus=gpus)
    return Findings(sections, told, lambda figure: draw(figure, scaling, joined))


def counts(available: int) -> list[int]:
    """Return the numbers of devices to measure: powers of two, and all."""
    found = [1 << power for power in range(available.bit_length()) if 1 << power <= available]
    return found if found[-1] == available else [*found, available]


def _scaled(benches: Sequence[Bench], elements: int) -> list[Sharded]:
    """Measure the tensor over the first device, then over more and more of them."""
    found = []
    for count in counts(len(benches)):
        devices = [bench.device.device for bench in benches[:count]]
        found.append(_sharded(GpuShards(elements, devices), count))
        torch.cuda.empty_cache()
    return found


def _sharded(shards: Shards, devices: int) -> Sharded:
    """Measure one number of devices: resident first, then the steps of scattering."""
    resident = times(shards, [shards.compute], rounds=ROUNDS)
    wrong = shards.wrong()
    if devices == 1:
        return Sharded(devices, resident, wrong=wrong)
    shards.gathered_wrong()  # wipes out what was there
    steps = [shards.scatter, shards.compute, shards.gather]
    scattered = times(shards, steps)
    wrong += shards.wrong() + shards.gathered_wrong()
    scatter, gather = times(shards, [shards.scatter]), times(shards, [shards.gather])
    return Sharded(devices, resident, scattered, scatter, gather, wrong)


def _joined(scope: Scope, benches: Sequence[Bench]) -> Section:
    if len(benches) < 2:
        return missing("How the GPUs are joined", "there is one GPU, and nothing to join it to")
    size = SMALL_PATTERN_BYTES if scope.small else PATTERN_BYTES
    how = (
        f"A pattern of {size >> 20} MiB made on one GPU, copied to the other and compared there "
        "with the pattern made anew; then a kernel on the other reads it in place. Rates are "
        "medians on the host clock, those of the kernel by events. Numbers are torch's"
    )
    return Section(
        "How the GPUs are joined", how, pair_rows(list(pairs(benches, size))), PAIR_UNITS
    )


def _linked(benches: Sequence[Bench]) -> list[Row]:
    return [
        {"GPU": number, "name": str(bench.facts["name"]), **nvlinks(bench)}
        for number, bench in enumerate(benches)
    ]


def _keep(scope: Scope, each: Sharded, elements: int) -> None:
    """Keep both ways for the store."""
    for way, seconds in ((RESIDENT, each.resident), (SCATTERED, each.scattered)):
        if not seconds:
            continue
        keep(
            scope,
            Timed(
                kernel="relu_sharded",
                implementation=way,
                dtype="float32",
                shape=(elements,),
                seconds=seconds,
                timer="host_clock_all_devices",
                passed=each.wrong == 0,
                detail=None if each.wrong == 0 else f"{each.wrong} elements were wrong",
                parameters={"devices": each.devices},
                bytes_moved=8 * elements,
                flop=elements,
                source_file="perftests/studies/several_gpus.py",
            ),
        )


def _how(elements: int, gpus: int) -> str:
    where = "a GPU and a stream" if gpus else "a thread"
    return (
        f"ReLU of {elements >> 20} Mi fp32 values in shards, {where} each; resident: {ROUNDS} "
        "launches a shard between two waits for all; scatter_gather: the whole tensor is on the "
        "first device, is copied out, computed and copied back, the shards side by side; "
        "efficiency is the speed-up over the number of devices; `pays after` is how many such "
        "kernels on resident shards save what scatter and gather take"
    )


STUDY = Study("several_gpus", "Several GPUs", CLAIM, run)
