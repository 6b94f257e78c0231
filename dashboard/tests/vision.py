"""How different two colours look: contrast, and distance under simulated colour vision.

Source: contrast, WCAG 2.1 "relative luminance"; simulation, Machado, Oliveira and Fernandes
(2009), severity 1.0, on linear RGB; distance, CIE 1976 L*a*b* under D65.
"""

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]
_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])
VISIONS: dict[str, _Array] = {
    "usual": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def _linear(colour: str) -> _Array:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    curve = ((channels + 0.055) / 1.055) ** 2.4
    return np.asarray(np.where(channels <= 0.04045, channels / 12.92, curve), dtype=np.float64)


def contrast(first: str, second: str) -> float:
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted(float(weights @ _linear(c)) for c in (first, second))
    return (high + 0.05) / (low + 0.05)


def _lab(linear: _Array) -> _Array:
    ratio = (_XYZ @ linear) / _WHITE
    small = 6 / 29
    f = np.where(ratio > small**3, np.cbrt(ratio), ratio / (3 * small**2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(first: str, second: str, vision: str) -> float:
    seen = [_lab(np.clip(VISIONS[vision] @ _linear(c), 0, 1)) for c in (first, second)]
    return float(np.linalg.norm(seen[0] - seen[1]))
