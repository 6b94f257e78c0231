"""Every correctness test runs on the CPU and, where there is one, on a GPU."""

import pytest
import torch

NO_GPU = "no NVIDIA GPU here"
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)


@pytest.fixture(
    params=[
        pytest.param("cpu", id="cpu"),
        pytest.param("cuda", id="cuda", marks=[gpu, needs_gpu]),
    ]
)
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)
