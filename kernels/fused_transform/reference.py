"""What the fused transform means, in float64 and in the two steps as written."""

import torch

from kernels.fused_transform.transform import Transform, transform_of


def reference(
    x: torch.Tensor, *, transform: Transform | str | None = None, dtype: str = ""
) -> torch.Tensor:
    """Return ((x - mean) / std) @ matrix in float64; x is [..., C], the result [..., D].

    `dtype`, the output's, has no part in the meaning.
    """
    del dtype
    mean, std, matrix = map(torch.from_numpy, transform_of(transform).arrays())
    wide = x.double()
    mean, std, matrix = (part.to(wide.device) for part in (mean, std, matrix))
    # Summed channel by channel: a library's matrix product may take another precision or order.
    scaled = (wide - mean) / std
    return sum(
        (scaled[..., c : c + 1] * matrix[c] for c in range(matrix.shape[0])),
        torch.zeros((), dtype=torch.float64, device=wide.device),
    )
