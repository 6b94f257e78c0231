"""The table of verdicts: order, hiding, counts, numbers for people."""

import json
from dataclasses import replace

import pytest

from tracker.errors import ExitCode
from tracker.model import Peaks, Status, VerdictKind, Warn
from tracker.reasons import Reason, ReasonCode
from tracker.report.document import Row, Tone
from tracker.report.html import to_html
from tracker.report.json_ import to_json
from tracker.report.judged import OUTCOMES, Judged
from tracker.report.junit import to_junit
from tracker.report.markdown import to_markdown
from tracker.report.text import to_text
from tracker.report.verdicts import Heading, mean_change, verdict_document
from tracker.tests.report.samples import make_document, make_judged, make_result, one_of_each


def names(judged: list[Judged] | None = None, limit: int | None = None) -> list[object]:
    table = make_document(judged, limit=limit).tables[0]
    return [row.values["kernel"] for row in table.visible()]


def texts(row: Row) -> list[str]:
    return [note.text for note in row.footnotes]


def test_what_asks_for_action_comes_first_and_the_worst_on_top() -> None:
    assert names() == ["wrong", "worst", "worse", "better", "odd", "new", "same"]


def test_above_the_limit_the_undecided_are_hidden_last_and_the_decided_never() -> None:
    assert names(limit=7) == ["wrong", "worst", "worse", "better", "odd", "new", "same"]
    assert names(limit=6) == ["wrong", "worst", "worse", "better", "odd", "new"]
    assert names(limit=4) == ["wrong", "worst", "worse", "better"]
    assert names(limit=0) == ["wrong", "worst", "worse", "better"]


def test_what_is_hidden_is_counted_by_outcome() -> None:
    table = make_document(limit=4).tables[0]
    assert table.hidden_note is not None
    assert table.hidden_note.startswith("hidden: 1 undecided, 1 no baseline, 1 no change")
    assert len(table.rows) == 7
    assert make_document(limit=7).tables[0].hidden_note is None


def test_the_command_that_shows_what_is_hidden_is_the_one_that_was_given() -> None:
    heading, every = Heading("Comparison"), "bandwatch compare a b --all"
    shown = verdict_document(heading, one_of_each(), ExitCode.OK, limit=4, every_row=every)
    told = shown.tables[0].hidden_note
    assert told is not None
    assert told.endswith("(bandwatch compare a b --all shows every row)")


def test_the_summary_counts_every_case_and_names_the_exit_code() -> None:
    assert make_document().summary == (
        "1 incorrect, 2 regressions, 1 improvement, 1 undecided, 1 no baseline, 1 no change "
        "of 7 cases: exit 1"
    )
    empty = make_document([], code=ExitCode.UNDECIDED)
    assert empty.summary == "nothing was measured, so nothing was judged"
    assert empty.facts["verdict"] == "nothing measured"


def test_facts_count_outcomes_for_machines() -> None:
    facts = make_document().facts
    counted = {outcome: facts[outcome.replace(" ", "_")] for outcome in OUTCOMES}
    assert sum(int(str(count)) for count in counted.values()) == facts["cases"] == 7
    assert facts["verdict"] == "regression"


def test_a_first_run_is_no_baseline_and_not_undecided() -> None:
    why = Reason(ReasonCode.NO_BASELINE, "no earlier comparable result")
    judged = [make_judged(VerdictKind.UNDECIDED, reasons=(why,), rule="")]
    document = make_document(judged, code=ExitCode.OK)
    assert document.facts["verdict"] == "no baseline"
    assert document.summary == "1 no baseline of 1 case: exit 0"
    assert document.failed is False


def test_numbers_are_scaled_for_people_and_plain_for_machines() -> None:
    judged = make_judged(VerdictKind.REGRESSION, effect=-0.05)
    (row,) = make_document([judged]).tables[0].rows
    # 2^27 bytes in a millisecond are 134.2 GB/s, 67.1 % of a copy's 200 GB/s.
    assert row.values["time"] == "1.000 ms"
    assert row.values["rate"] == "134.2"
    assert row.values["of_copy"] == "67.1 %"
    assert row.values["change"] == "-5.00 % (-6.00 to -4.00)"
    assert row.values["time_s"] == 1e-3
    assert row.values["bandwidth_bytes_per_s"] == pytest.approx(2**27 / 1e-3)
    assert row.values["bandwidth_change"] == -0.05


def test_a_slower_case_points_up_and_a_faster_one_down() -> None:
    rows = {row.values["kernel"]: row for row in make_document().tables[0].rows}
    assert rows["worse"].values["mark"] == "▲ slower"
    assert rows["better"].values["mark"] == "▼ faster"
    assert rows["same"].values["mark"] == "= no change"
    assert rows["odd"].values["mark"] == "? undecided"
    assert (rows["worse"].tone, rows["better"].tone) == (Tone.WORSE, Tone.BETTER)


def test_a_case_that_vanished_has_a_row_without_numbers() -> None:
    judged = make_judged(
        VerdictKind.UNDECIDED, reasons=(Reason(ReasonCode.VANISHED, "the case is gone"),)
    )
    (row,) = make_document([replace(judged, result=None)]).tables[0].rows
    assert row.values.get("time") is None
    assert texts(row) == ["the case is gone"]


def test_reasons_warnings_and_settings_are_footnotes_but_not_what_the_mark_says() -> None:
    judged = make_judged(
        VerdictKind.NO_CHANGE,
        effect=0.0,
        reasons=(
            Reason(ReasonCode.WITHIN_NOISE, "within noise"),
            Reason(ReasonCode.DIRTY, "head was dirty"),
        ),
        warnings=(Warn("clock", "the clock moved"),),
        remarks=("own thresholds by A. Person",),
    )
    (row,) = make_document([judged]).tables[0].rows
    assert texts(row) == ["head was dirty", "the clock moved", "own thresholds by A. Person"]


def test_a_wrong_result_is_told_as_wrong_whatever_the_verdict() -> None:
    judged = make_judged(VerdictKind.UNDECIDED, status=Status.ERROR)
    assert judged.outcome == "error"


def test_the_mean_change_is_geometric_and_only_over_what_both_sides_measured() -> None:
    pair = [
        make_judged(VerdictKind.NO_CHANGE, effect=1.0),
        make_judged(VerdictKind.NO_CHANGE, effect=-0.5),
        make_judged(VerdictKind.UNDECIDED),
    ]
    change, shared = mean_change(pair)
    assert change == pytest.approx(0.0, abs=1e-12)
    assert shared == 2
    assert mean_change([]) == (None, 0)


def test_one_baseline_is_one_line_and_several_are_counted() -> None:
    judged = one_of_each()
    assert "baseline: newest clean run of an ancestor" in make_document(judged).fact_lines
    other = [*judged, make_judged(VerdictKind.NO_CHANGE, "z", effect=0.0, rule="this commit")]
    lines = make_document(other).fact_lines
    assert "baseline of 6 cases: newest clean run of an ancestor" in lines
    assert "baseline of 1 case: this commit" in lines


def test_what_noise_could_have_hidden_stands_once_with_a_count() -> None:
    judged = [
        make_judged(
            VerdictKind.UNDECIDED,
            f"k{loss}",
            effect=-0.02,
            reasons=(Reason(ReasonCode.TOO_NOISY, f"could only have shown a loss of {loss} %"),),
        )
        for loss in (30, 40, 50)
    ]
    document = make_document(judged)
    shown = to_text(document, width=100)
    assert "[1] could only have shown a loss of 30 % (and 2 more like it)" in shown
    assert "[2]" not in shown
    # Machines get each row's own.
    assert "could only have shown a loss of 50 %" in to_json(document)


def test_two_kinds_of_noise_are_two_footnotes_each_with_its_own_count() -> None:
    # On a busy CPU one case did not settle and most could only have shown a lot.
    texts = ["base did not settle, on a CPU: measure again"]
    texts += [f"could only have shown a loss of {loss}.5 %; noise {loss} %" for loss in (60, 70)]
    judged = [
        make_judged(
            VerdictKind.UNDECIDED, f"k{n}", effect=0.0, reasons=(Reason(ReasonCode.TOO_NOISY, t),)
        )
        for n, t in enumerate(texts)
    ]
    shown = to_text(make_document(judged), width=100)
    assert "[1] base did not settle, on a CPU: measure again\n" in shown
    assert "[2] could only have shown a loss of 60.5 %; noise 60 % (and 1 more like it)" in shown


ELSEWHERE = Reason(
    ReasonCode.OTHER_ENVIRONMENT,
    "earlier runs are of another environment, libraries.torch: 2.11.0 -> 2.12.0",
)


def in_another_environment(count: int) -> list[Judged]:
    """Return cases of a run after a change of torch, as the gate tells of them."""
    first = Reason(
        ReasonCode.NO_BASELINE, "no earlier comparable result: this one becomes the baseline"
    )
    passed_over = "no baseline: of 2 earlier runs, 2 with another environment"
    return [
        make_judged(
            VerdictKind.UNDECIDED,
            f"k{n}",
            reasons=(ELSEWHERE, first),
            rule="",
            remarks=(passed_over,),
        )
        for n in range(count)
    ]


def test_that_the_environment_changed_is_one_footnote_with_how_many_cases_it_is_of() -> None:
    document = make_document(in_another_environment(3), code=ExitCode.UNDECIDED)
    for shown in (to_text(document, width=140), to_markdown(document), to_html(document)):
        assert shown.count("another environment") == 1
        assert "; 3 cases" in shown
        assert "no earlier comparable result" not in shown
    # Machines get all that was found of each.
    assert to_json(document).count("no earlier comparable result") == 3
    alone = to_text(make_document(in_another_environment(1)), width=140)
    assert "1 case" not in alone.partition("[1] earlier")[2].partition("\n")[0]


def test_what_was_passed_over_for_another_reason_too_is_still_told() -> None:
    (judged,) = in_another_environment(1)
    more = "no baseline: of 3 earlier runs, 2 with another environment, 1 with uncommitted changes"
    dirty = Reason(ReasonCode.NO_BASELINE, "no earlier comparable result; uncommitted changes")
    verdict = replace(judged.verdict, reasons=(ELSEWHERE, dirty))
    (row,) = make_document([replace(judged, verdict=verdict, remarks=(more,))]).tables[0].rows
    assert texts(row) == [ELSEWHERE.message, dirty.message, more]


def test_why_all_cases_are_undecided_is_told_where_their_rows_are_hidden() -> None:
    shown = to_text(make_document(in_another_environment(70), limit=60), width=140)
    assert "hidden: 70 no baseline" in shown
    assert f"note: {ELSEWHERE.message}; 70 cases" in shown
    # Where a row that is shown says it, once is enough.
    some = [*in_another_environment(3), make_judged(VerdictKind.NO_CHANGE, "same", effect=0.0)]
    assert "note:" not in to_text(make_document(some, limit=3), width=140)


def test_of_several_counts_of_further_runs_the_greatest_stands() -> None:
    def doubtful(more: int) -> Judged:
        judged = make_judged(VerdictKind.UNDECIDED, f"k{more}", effect=-0.001 * more)
        told = f"measure head {more} more times in fresh processes (bandwatch ci --repeats {more})"
        verdict = replace(judged.verdict, more_runs=more, what_would_decide=told)
        return replace(judged, verdict=verdict)

    shown = to_text(make_document([doubtful(more) for more in (3, 7, 5)]), width=140)
    assert "[1] measure head 7 more times in fresh processes (bandwatch ci --repeats 7)" in shown
    assert "; of 3 cases the most" in shown
    assert "[2]" not in shown


def test_no_change_says_what_would_have_shown_where_that_is_much() -> None:
    why = Reason(ReasonCode.WITHIN_NOISE, "a loss of 43 % would have shown")
    judged = make_judged(VerdictKind.NO_CHANGE, effect=0.15, reasons=(why,))
    coarse = replace(judged, verdict=replace(judged.verdict, detectable=0.43))
    assert "a loss of 43 % would have shown" not in to_text(make_document([judged]), width=100)
    assert "[1] a loss of 43 % would have shown" in to_text(make_document([coarse]), width=100)


def test_the_loss_that_would_have_shown_stands_wherever_no_change_does() -> None:
    noisy = Reason(ReasonCode.TOO_NOISY, "could only have shown a loss of 31 %, not one of 20 %")
    judged = [
        make_judged(VerdictKind.NO_CHANGE, "same", effect=0.001),
        make_judged(VerdictKind.UNDECIDED, "blind", effect=0.001, reasons=(noisy,)),
        make_judged(VerdictKind.REGRESSION, "slow", effect=-0.3),
    ]
    judged[1] = replace(judged[1], verdict=replace(judged[1].verdict, detectable=0.31))
    document = make_document(judged)
    shown = to_text(document, width=120)
    assert line_of(shown, "same").endswith("2.00 %  = no change")
    assert "31.00 %  ? undecided" in line_of(shown, "blind")
    assert "2.00 %" not in line_of(shown, "slow")
    told = "would show: the smallest loss that the comparison would have called"
    assert told in document.fact_lines
    assert not any("would show" in line for line in make_document(judged[2:]).fact_lines)


# A copy and a sum of two arrays of as many bytes, and an empty kernel, on an H200.
BESIDE = Peaks(copy_bytes_per_s=500e9, two_read_bytes_per_s=400e9, floor_s=2.88e-6)
FLOOR_LINE = "empty kernel, by the same timer: 2.88 us cold"


LAUNCH_LINE = (
    "launch-bound: most of the time is the launch, so the bandwidth says nothing of the memory"
)
NEAR = Warn("near_floor", "an empty kernel shows 2.88 us by the same timer")


def timed(
    name: str,
    time_s: float,
    *,
    arrays: int = 2,
    kind: VerdictKind = VerdictKind.REGRESSION,
    warnings: tuple[Warn, ...] = (),
) -> Judged:
    judged = make_judged(kind, name, effect=-0.05)
    case = replace(judged.verdict.case, shape=(1 << 17,))
    result = make_result(case, time_s, arrays=arrays, peaks=BESIDE, warnings=warnings)
    return Judged(replace(judged.verdict, case=case), result)


def line_of(shown: str, name: str) -> str:
    return next(line for line in shown.splitlines() if line.startswith(name))


def test_an_empty_kernel_stands_beside_a_small_one_and_not_beside_a_large_one() -> None:
    document = make_document([timed("small", 4.58e-6), timed("large", 1e-4)])
    shown = to_text(document, width=120)
    assert "time    empty   GB/s" in line_of(shown, "case")
    assert "4.580 us  2.88 us" in line_of(shown, "small")
    assert "2.88 us" not in line_of(shown, "large")
    assert FLOOR_LINE in shown
    assert "| 4.580 us | 2.88 us |" in to_markdown(document)
    assert '<td class="number drop5">2.88 us</td>' in to_html(document)


def test_where_no_small_kernel_is_shown_nothing_is_said_of_empty_ones() -> None:
    hidden = timed("small", 4.58e-6, kind=VerdictKind.NO_CHANGE)
    document = make_document([timed("large", 1e-4), hidden], limit=1)
    assert "empty" not in to_text(document, width=120)
    assert "empty" not in to_markdown(document)
    # In a page they are only folded.
    assert "2.88 us" in to_html(document)


def test_in_a_narrow_terminal_the_empty_kernel_is_in_the_line_above() -> None:
    shown = to_text(make_document([timed("small", 4.58e-6)]), width=80)
    assert FLOOR_LINE in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "4.580 us" in line_of(shown, "small")


def test_empty_kernels_of_several_processes_and_modes_are_a_range_each() -> None:
    several = [timed(name, 4.58e-6) for name in ("a", "b", "c")]
    for place, (cache, floor) in enumerate([("cold", 2.85e-6), ("cold", 2.9e-6), ("hot", 1.1e-6)]):
        case = replace(several[place].verdict.case, cache=cache)
        found = make_result(case, 4.58e-6, peaks=replace(BESIDE, floor_s=floor))
        several[place] = Judged(replace(several[place].verdict, case=case), found)
    told = "empty kernel, by the same timer: 2.85 us to 2.90 us cold, 1.10 us hot"
    assert told in make_document(several).fact_lines


def test_the_share_of_a_sum_of_two_arrays_stands_beside_what_moves_three() -> None:
    # 1.5 MiB in 4.58 us are 343.4 GB/s: 68.7 % of the copy's 500 and 85.9 % of the sum's 400.
    document = make_document([timed("add", 4.58e-6, arrays=3), timed("relu", 4.58e-6)])
    shown = to_text(document, width=140)
    assert "of copy  of sum" in line_of(shown, "case")
    assert "68.7 %  85.9 %" in line_of(shown, "add")
    assert "57.2 %" not in shown  # of the sum, which relu, with its two arrays, is not told
    assert "of sum" not in to_text(make_document([timed("relu", 4.58e-6)]), width=140)


def test_machines_get_the_floor_and_both_shares_of_every_result() -> None:
    rows = json.loads(to_json(make_document([timed("relu", 1e-4)])))["tables"]["verdicts"]
    assert rows[0]["floor_s"] == 2.88e-6
    # 1 MiB in 100 us are 10.49 GB/s.
    assert rows[0]["two_read_fraction"] == pytest.approx(2**20 / 1e-4 / 400e9)
    assert rows[0]["copy_fraction"] == pytest.approx(2**20 / 1e-4 / 500e9)


def test_no_share_of_a_copy_is_shown_of_what_is_mostly_launch() -> None:
    # 1.5 MiB in 4 us are 393 GB/s: 78.6 % of the copy and 98.3 % of the sum, of which neither tells.
    bound = timed("bound", 4e-6, arrays=3, warnings=(NEAR,))
    document = make_document([bound, timed("large", 1e-4)])
    shown = to_text(document, width=140)
    assert "2.88 us  393.2  launch-bound" in line_of(shown, "bound")
    assert "78.6 %" not in shown
    assert "98.3 %" not in shown
    # 10.49 of 500 GB/s.
    assert "2.1 %" in line_of(shown, "large")
    assert LAUNCH_LINE in document.fact_lines
    assert "| 2.88 us | 393.2 | launch-bound |" in to_markdown(document)
    assert ">launch-bound</td>" in to_html(document)
    for width in (60, 80):
        narrow = to_text(document, width=width)
        assert "78.6 %" not in narrow
        assert LAUNCH_LINE in " ".join(narrow.split())


def test_machines_get_the_share_and_that_it_says_nothing() -> None:
    document = make_document([timed("bound", 4e-6, warnings=(NEAR,)), timed("large", 1e-4)])
    rows = {row["kernel"]: row for row in json.loads(to_json(document))["tables"]["verdicts"]}
    assert rows["bound"]["copy_fraction"] == pytest.approx(2**20 / 4e-6 / 500e9)
    assert [rows[name]["launch_bound"] for name in ("bound", "large")] == [True, False]
    assert '<property name="launch_bound" value="True"/>' in to_junit(document)
    assert '<property name="floor_s" value="2.88e-06"/>' in to_junit(document)


def test_where_no_launch_bound_row_is_shown_the_word_is_not_explained() -> None:
    hidden = timed("small", 4e-6, kind=VerdictKind.NO_CHANGE, warnings=(NEAR,))
    document = make_document([timed("large", 1e-4), hidden], limit=1)
    assert LAUNCH_LINE not in document.fact_lines
    assert "launch-bound" not in to_text(document, width=120)
