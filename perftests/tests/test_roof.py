"""The roof study's table: what is measured, and how a cell is judged. No GPU needed."""

from pathlib import Path

import pytest

from kernels.registry import get
from perftests.studies import roof
from perftests.studies.roof_cells import GROUPS, OURS, SIZES_MIB, Cell, Goal
from perftests.studies.roof_judged import WITHIN, at_least, judged, worst
from perftests.studies.roof_measured import Measured, Ratio, copied_bytes, ratio_of
from perftests.studies.tables import Section
from perftests.studies.turns import Turned

CELLS = [cell for group in GROUPS.values() for cell in group()]


def cell(group: str, label: str, mib: float) -> Cell:
    (found,) = (c for c in GROUPS[group]() if c.label == label and c.mib == mib)
    return found


def found(
    ours_us: float, *, aligned_us: float | None = None, error: float = 0.0, **peers_us: float
) -> Measured:
    """Return times in us of a problem that moves 8 MB where the copy takes 2 us, relative errors."""
    times = {
        name: Turned(us * 1e-6, us * 1e-6 * error)
        for name, us in {**peers_us, OURS: ours_us}.items()
    }
    copies = {"kernel": Turned(2e-6, 0.0), "driver": Turned(2.2e-6, 0.0)}
    aligned = None if aligned_us is None else Turned(aligned_us * 1e-6, 0.0)
    return Measured(times, {}, 8_000_000, 8_000_000, copies, aligned)


def test_every_implementation_exists_and_ours_is_last() -> None:
    for each in CELLS:
        assert each.names[-1] == OURS
        assert len(each.names) > 1
        assert all(get(each.case.kernel, name) for name in each.names)


@pytest.mark.parametrize("kernel", ["relu", "add", "silu"])
def test_every_size_has_a_cell(kernel: str) -> None:
    for dtype in ("float32", "float16"):
        sizes = [c.mib for c in GROUPS[kernel]() if c.case.dtype == dtype]
        assert sizes == list(SIZES_MIB)


def test_cells_move_what_their_size_says() -> None:
    assert cell("relu", "relu float16", 16).case.shape == (8 << 20,)
    assert cell("odd lengths", "relu float32 odd length", 16).case.shape == ((4 << 20) - 1,)
    assert cell("misaligned", "relu float16 in+1 out+3", 256).case.input_offsets == (1,)
    assert len({(c.group, c.label, c.mib) for c in CELLS}) == len(CELLS)


def test_the_copy_beside_a_cell_has_an_array_of_its_size() -> None:
    assert copied_bytes(cell("add", "add float32", 256), 3 << 28) == 2 << 28
    assert copied_bytes(cell("relu", "relu float32", 256), 2 << 28) == 2 << 28
    assert copied_bytes(cell("others", "convert float32 float16", 256), 384 << 20) == 384 << 20


@pytest.mark.parametrize(
    ("ours", "torch", "reached"),
    [(2.0, 2.1, True), (2.01, 2.1, False), (1.9, 1.9, True), (1.9, 1.89, True), (1.9, 1.87, False)],
)
def test_a_goal_and_the_best_peer_both_count(ours: float, torch: float, reached: bool) -> None:
    row = judged(cell("relu", "relu float32", 256), found(ours, torch=torch, triton=2.5))
    assert row["reached"] is reached
    assert row["best peer"] == "torch"


def test_what_misses_by_less_than_its_error_is_said_to() -> None:
    assert at_least(Ratio(0.999, 0.0006), 1.0) == WITHIN
    assert at_least(Ratio(0.999, 0.0004), 1.0) is False
    assert at_least(Ratio(1.0, 0.1), 1.0) is True
    assert (worst([True, WITHIN]), worst([WITHIN, False]), worst([])) == (WITHIN, False, True)
    both = ratio_of(Turned(3.0, 0.03), Turned(4.0, 0.0))
    assert both.value == 0.75
    assert both.error == pytest.approx(0.0075)
    close = judged(cell("relu", "relu float32", 256), found(2.005, torch=2.1, error=0.002))
    assert close["reached"] == WITHIN
    assert close["of copy"] == "0.9975 ± 0.0020"


def test_the_drivers_copy_may_stand_for_a_faster_copy_kernel() -> None:
    middle = cell("relu", "relu float32", 16)
    assert judged(middle, found(2.05, torch=2.1))["reached"] is True  # 2.2 / 2.05 = 1.07
    assert judged(middle, found(2.15, torch=2.2))["reached"] is False


def test_goals_against_other_times() -> None:
    odd = cell("odd lengths", "relu float32 odd length", 256)
    assert judged(odd, found(2.0, torch=2.0, aligned_us=1.995))["reached"] is True
    assert judged(odd, found(2.0, torch=2.0, aligned_us=1.98))["reached"] is False
    assert judged(odd, found(2.0, torch=2.0))["reached"] is False
    large = next(iter(GROUPS["fused_transform"]()))
    times = {"torch_compile": 4.0, "torch_folded_compile": 3.95, "triton": 2.0}
    assert judged(large, found(2.0, torch_eager=23.5, **times))["reached"] is True
    assert judged(large, found(2.0, torch_eager=22.5, **times))["reached"] is False


def test_a_cell_without_our_time_is_not_reached() -> None:
    broken = Measured({"torch": Turned(2e-6, 0.0)}, {OURS: "broken link"}, 8_000_000, 8_000_000)
    row = judged(Cell("relu", CELLS[0].case, 1, ("torch", OURS), Goal(copy=1.0)), broken)
    assert row["reached"] is False
    assert row["note"] == "broken link"


def test_the_table_is_written(tmp_path: Path) -> None:
    each, times = cell("relu", "relu float32", 256), found(2.0, torch=2.1)
    section = Section("relu", "Cold medians", [judged(each, times)])
    environment = {"gpu_model": "NVIDIA Test", "driver": "580", "cuda": "13.0", "libraries": {}}
    facts = {"environment": environment, "device": {}}
    path = roof.write([section], [(each, times)], tmp_path, facts, "python -m x")
    text = path.read_text()
    assert path.name == "roof-nvidia-test.md"
    assert "1 of 1 cells" in text
    assert (
        "| relu float32 | 256 | 2.00 | 4.000 | 1.0000 ± 0.0000 | >= 1 | torch | 2.10 "
        "| -4.8% ± 0.0% | yes |"
    ) in text
    assert (tmp_path / "roof-nvidia-test.json").exists()


def test_an_unknown_group_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        roof.main(["gelu"])
    assert "no group 'gelu': there are relu" in capsys.readouterr().err
