"""The fused transform's cases: real image batches, and the widths and alignments that go wrong."""

from collections.abc import Iterator, Mapping

from kernels.cases import MIB, TIERS, Case, Scalar

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
# Images of 512 x 512 x 3 whose bytes in fp32 make the size that the reason names.
_BATCHES = {
    ("cuda", "quick"): ((85, "255 MiB in fp32: at the roof"),),
    ("cuda", "default"): (
        (5, "15 MiB in fp32: between launch cost and the roof"),
        (21, "63 MiB in fp32: beyond L2"),
        (85, "255 MiB in fp32: at the roof"),
        (1024, "3 GiB in fp32: the batch that articles time"),
    ),
}
_SMALL = (1, 200, 300, 3)  # 0.7 MiB in fp32


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
    if device_type == "cpu":
        for dtype, parameters in _FLAVOURS[: 1 if tier == "quick" else None]:
            yield Case(KERNEL, dtype, _SMALL, (), 0, parameters, "in cache", tier)
        return
    batches = _BATCHES[device_type, tier]
    for dtype, parameters in _FLAVOURS:
        for images, reason in batches:
            yield Case(KERNEL, dtype, (images, 512, 512, 3), (), 0, parameters, reason, tier)
        for (source, target), reason in _OFFSETS[: 0 if tier == "quick" else None]:
            shape = (85, 512, 512, 3)
            yield Case(KERNEL, dtype, shape, (source,), target, parameters, reason, tier)
    if tier == "default":
        for dtype, parameters, channels, reason in _CHANNELS:
            yield Case(KERNEL, dtype, (85, 512, 512, channels), (), 0, parameters, reason, tier)
        yield Case(
            KERNEL,
            "float32",
            (85, 509, 511, 3),
            (),
            0,
            _FLOAT,
            "odd sizes: a tail to compute",
            tier,
        )


def cases(device_type: str, tier: str) -> tuple[Case, ...]:
    """Return the cases for "cuda" or "cpu" in a tier. Raises ValueError on an unknown tier."""
    if tier not in TIERS:
        raise ValueError(f"no tier {tier!r}: the tiers are {', '.join(TIERS)}")
    return tuple(_correctness() if tier == "correctness" else _timed(device_type, tier))


LARGEST_BYTES = 2 * 3072 * MIB  # of a case: x and y of the article's batch
