"""Work on a stream that the harness once made current, on a GPU: another has its turn by then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.chain import measure
from perftests.harness.errors import Link
from perftests.tests import workloads
from perftests.tests.test_saboteurs import refused
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from perftests.harness.session import Session
    from perftests.harness.workload import Inputs

pytestmark = pytest.mark.gpu


class HalfOnAKeptStream:
    """Computes half of the output on the stream of its call number `which`, from then on."""

    def __init__(self, which: int) -> None:
        self.which = which
        self.streams: list[torch.cuda.Stream] = []

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        self.streams.append(torch.cuda.current_stream())
        half = out.numel() // 2
        workloads.relu_of_torch((inputs[0][:half],), out[:half])
        kept = self.streams[min(self.which, len(self.streams) - 1)]
        with torch.cuda.stream(kept):
            workloads.relu_of_torch((inputs[0][half:],), out[half:])


def test_work_on_the_stream_of_its_first_call_is_refused(quick_session: Session, gpu: str) -> None:
    """Right on one stream for ever: timed on the next, it would show an empty launch."""
    kept: list[torch.cuda.Stream] = []

    def on_its_first_stream(inputs: Inputs, out: torch.Tensor) -> None:
        kept.append(torch.cuda.current_stream())
        with torch.cuda.stream(kept[0]):
            workloads.relu_of_torch(inputs, out)

    outcome = measure(relu_workload(on_its_first_stream, n=1 << 20, device=gpu), quick_session)
    refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")


@pytest.mark.parametrize("which", [0, 1, 2, 20])
def test_half_of_the_work_on_a_kept_stream_is_refused(
    which: int, quick_session: Session, gpu: str
) -> None:
    """The first call and the look at the order have one each; further ones are timed."""
    device: Any = quick_session.bench(torch.device(gpu)).device
    assert device.sets_needed("cold", 2 << 24) > 1, "in one place one stream is timed, and no other"
    outcome = measure(relu_workload(HalfOnAKeptStream(which), n=1 << 22, device=gpu), quick_session)
    refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")
