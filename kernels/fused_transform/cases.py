"""The fused transform's cases: real image batches, and the widths and alignments that go wrong."""

from collections.abc import Iterator, Mapping

from kernels.cases import TIERS, Case, Scalar

KERNEL = "fused_transform"
# dtype and parameters of each flavour: the transform is in the units of x.
_FLOAT: Mapping[str, Scalar] = {"transform": "imagenet_ycbcr"}
_BYTES: Mapping[str, Scalar] = {"transform": "imagenet_ycbcr_255", "dtype": "float32"}
_BYTES_HALF: Mapping[str, Scalar] = {"transform": "imagenet_ycbcr_255", "dtype": "float16"}
_FLAVOURS = (("float32", _FLOAT), ("float16", _FLOAT), ("uint8", _BYTES), ("uint8", _BYTES_HALF))
_CHANNELS = (
    ("float32", {"transform": "grey_bt601"}, 3, "three channels to one"),
    ("uint8", {"transform": "grey_bt601", "dtype": "float32"}, 3, "bytes to grey"),
    ("float32", {"transform": "four_bands"}, 4, "four channels to three"),
    ("float16", {"transform": "four_bands"}, 4, "four channels to three"),
)
_OFFSETS = (
    ((1, 0), "input one element off, as a slice is"),
    ((1, 1), "both off alike"),
    ((2, 3), "off differently: no common alignment"),
)
_IMAGES = (85, 512, 512)  # 255 MiB of fp32 with three channels
_SMALL = (1, 100, 150, 3)


def _correctness() -> Iterator[Case]:
    for dtype, parameters in _FLAVOURS:
        for width in (*range(1, 18), 129, 1025):
            yield Case(
                KERNEL, dtype, (1, 2, width, 3), (), 0, parameters,
                "widths about a vector, a warp and a tile", "correctness",
            )  # fmt: skip
        for (source, target), reason in _OFFSETS:
            yield Case(
                KERNEL, dtype, (1, 3, 341, 3), (source,), target, parameters, reason, "correctness"
            )
        yield Case(KERNEL, dtype, (0, 4, 4, 3), (), 0, parameters, "no image", "correctness")
    for dtype, parameters, channels, reason in _CHANNELS:
        yield Case(KERNEL, dtype, (1, 3, 341, channels), (1,), 0, parameters, reason, "correctness")


def _timed(device_type: str, tier: str) -> Iterator[Case]:
    """Yield what is timed: few cases, since each is a compilation for two of the peers."""
    quick = tier == "quick"
    if device_type == "cpu":
        for dtype, parameters in _FLAVOURS[: 1 if quick else 3]:
            yield Case(KERNEL, dtype, _SMALL, (), 0, parameters, "in cache", tier)
        return
    for dtype, parameters in (_FLAVOURS[0], _FLAVOURS[2]) if quick else _FLAVOURS:
        yield Case(KERNEL, dtype, (*_IMAGES, 3), (), 0, parameters, "at the roof", tier)
    if quick:
        return
    small = "15 MiB: between launch cost and the roof"
    yield Case(KERNEL, "float32", (5, 512, 512, 3), (), 0, _FLOAT, small, tier)
    odd = "odd sizes: a cut tile at the end"
    yield Case(KERNEL, "float32", (5, 509, 511, 3), (), 0, _FLOAT, odd, tier)
    (source, target), reason = _OFFSETS[0]
    yield Case(KERNEL, "float32", (*_IMAGES, 3), (source,), target, _FLOAT, reason, tier)
    for dtype, parameters, channels, reason in (_CHANNELS[0], _CHANNELS[2]):
        yield Case(KERNEL, dtype, (*_IMAGES, channels), (), 0, parameters, reason, tier)


def cases(device_type: str, tier: str) -> tuple[Case, ...]:
    """Return the cases for "cuda" or "cpu" in a tier. Raises ValueError on an unknown tier."""
    if tier not in TIERS:
        raise ValueError(f"no tier {tier!r}: the tiers are {', '.join(TIERS)}")
    return tuple(_correctness() if tier == "correctness" else _timed(device_type, tier))
