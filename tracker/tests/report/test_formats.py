"""Each format: width, colour, encodings, strict JSON, limits of GitHub."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from tracker.errors import ConfigError, ExitCode
from tracker.model import VerdictKind, Warn
from tracker.report import report_schema
from tracker.report.document import Column, Document, Kind, Row, Table
from tracker.report.formats import Format, write
from tracker.report.github import annotations
from tracker.report.json_ import to_json
from tracker.report.markdown import to_markdown
from tracker.report.text import to_text, write_text
from tracker.tests.report.samples import make_document, make_judged


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def validator() -> Callable[[Any], Any]:
    return fastjsonschema.compile(report_schema())


def many(count: int) -> list[Any]:
    return [
        make_judged(VerdictKind.REGRESSION, f"kernel{i:05d}", effect=-0.5 + i * 1e-6)
        for i in range(count)
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_text_fits_the_width_and_keeps_name_and_verdict(width: int) -> None:
    shown = to_text(make_document(), width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert "worst" in shown
    assert "▲ slower" in shown


@pytest.mark.parametrize("width", [40, 60, 80])
def test_an_id_stays_on_one_line_and_the_columns_beside_it_give_way(width: int) -> None:
    columns = (
        Column("id", "id", Kind.ID),
        Column("branch", "branch", Kind.CODE, drop=1),
        Column("words", "words", Kind.TEXT),
    )
    name = "0123456789abcdef" * 2
    row = Row({"id": name, "branch": "b" * 40, "words": "several words " * 5})
    document = Document("runs", "", "", tables=(Table("runs", columns, (row,)),))
    shown = to_text(document, width=width)
    assert name in shown
    assert max(map(len, shown.splitlines())) <= width
    assert f"`{name}`" in to_markdown(document)


@pytest.mark.parametrize("width", [40, 60])
def test_an_id_that_leaves_others_no_room_folds_and_nothing_is_cut(width: int) -> None:
    columns = (
        Column("id", "id", Kind.ID),
        Column("number", "number", Kind.NUMBER),
        Column("word", "word", Kind.WORD),
    )
    name = "0123456789abcdef" * 4
    row = Row({"id": name, "number": 123456, "word": "decided"})
    document = Document("runs", "", "", tables=(Table("runs", columns, (row,)),))
    shown = to_text(document, width=width)
    assert {"123456", "decided"} <= set(shown.split())
    assert name in "".join(line.split()[0] for line in shown.splitlines())
    assert max(map(len, shown.splitlines())) <= width


def test_a_wide_text_has_every_column() -> None:
    lines = to_text(make_document(), width=120).splitlines()
    header = next(line for line in lines if line.startswith("case "))
    for heading in ("time", "GB/s", "of copy", "change of GB/s", "would show", "verdict"):
        assert heading in header


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, log = Terminal(), io.StringIO()
    write_text(make_document(), terminal, width=100)
    write_text(make_document(), log, width=100)
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" not in log.getvalue()


def test_the_columns_variable_sets_the_width_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    log = io.StringIO()
    write_text(make_document(), log)
    assert max(map(len, log.getvalue().splitlines())) <= 50


def test_an_ascii_stream_gets_ascii_marks() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_text(make_document(), stream, width=100)
    stream.flush()
    assert b"^ slower" in raw.getvalue()


def test_equal_reasons_share_one_footnote() -> None:
    judged = [
        make_judged(VerdictKind.REGRESSION, name, effect=-0.1, remarks=("same reason",))
        for name in ("a", "b")
    ]
    shown = to_text(make_document(judged), width=100)
    assert shown.count("same reason") == 1
    assert shown.count("▲ slower [1]") == 2


def test_a_warning_with_numbers_of_its_own_stands_once_with_a_count() -> None:
    judged = [
        make_judged(
            VerdictKind.NO_CHANGE, f"k{i}", effect=0.0, warnings=(Warn("cap", f"error of {i} %"),)
        )
        for i in range(3)
    ]
    shown = to_text(make_document(judged), width=100)
    assert "[1] error of 0 % (and 2 more like it)" in shown
    assert shown.count("[1]") == 4


def test_json_has_the_documented_shape() -> None:
    validate = validator()
    validate(json.loads(to_json(make_document())))
    validate(json.loads(to_json(make_document([], code=ExitCode.UNDECIDED))))


def test_the_schema_refuses_another_shape() -> None:
    data = json.loads(to_json(make_document()))
    del data["tables"]["verdicts"][0]["time_s"]
    with pytest.raises(fastjsonschema.JsonSchemaException, match="time_s"):
        validator()(data)


def test_json_holds_hidden_rows_too_and_no_number_that_is_none() -> None:
    table = Table("t", (Column("x", "x", Kind.NUMBER),), (Row({"x": float("nan")}, hidden=True),))
    data = json.loads(to_json(Document("runs", "", "", tables=(table,), facts={"y": float("inf")})))
    assert data["tables"]["t"] == [{"x": None}]
    assert data["facts"] == {"y": None}


def test_csv_has_units_in_its_header_and_full_precision() -> None:
    out = io.StringIO()
    write(make_document(), Format.CSV, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert {"time_s", "bytes_moved", "bandwidth_bytes_per_s"} <= rows[0].keys()
    assert "rate" not in rows[0]
    worst = next(row for row in rows if row["kernel"] == "worst")
    assert float(worst["bandwidth_bytes_per_s"]) == (8 << 24) / 1e-3
    assert worst["shape"] == "[16777216]"
    assert next(row for row in rows if row["kernel"] == "wrong")["time_s"] == ""


def test_markdown_is_cut_by_whole_rows_and_says_how_many() -> None:
    text = to_markdown(make_document(many(2000)), limit=65_536)
    rows = [line for line in text.splitlines() if line.startswith("| `kernel")]
    assert len(text.encode()) <= 65_536
    assert len(text.encode()) > 55_000
    assert all(line.endswith("|") for line in rows)
    assert f"{2000 - len(rows)} more rows did not fit and were cut." in text
    assert rows[0].startswith("| `kernel00000")


def test_at_most_ten_annotations_and_a_count_of_the_rest() -> None:
    lines = annotations(make_document(many(13)))
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert lines[-1] == "::notice::3 more are in the step summary"
    assert "kernel00000" in lines[0]


def test_what_belongs_to_no_row_is_annotated_first_and_harmless() -> None:
    lines = annotations(make_document(many(13)), ["cannot measure\n::set-output name=x::1 50%"])
    assert lines[0] == "::error::cannot measure ::set-output name=x::1 50%25"
    assert sum(line.startswith("::error") for line in lines) == 10
    assert lines[-1] == "::notice::4 more are in the step summary"


def test_github_files_get_the_table_and_the_outputs(tmp_path: Path) -> None:
    summary, outputs, out = tmp_path / "summary", tmp_path / "outputs", io.StringIO()
    summary.write_text("before\n")
    environ = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs)}
    write(make_document(), Format.GITHUB, out, environ)
    assert summary.read_text().startswith("before\n### Verdicts")
    assert "verdict=regression" in outputs.read_text().splitlines()
    assert "exit_code=1" in outputs.read_text().splitlines()
    assert "| case |" not in out.getvalue()


def test_a_step_summary_never_grows_beyond_what_github_keeps(tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    summary.write_text("x" * 1_000_000)
    environ = {"GITHUB_STEP_SUMMARY": str(summary)}
    write(make_document(many(3000)), Format.GITHUB, io.StringIO(), environ)
    assert summary.stat().st_size <= 1_048_576
    assert "rows did not fit" in summary.read_text()


def test_outside_actions_the_table_follows_the_annotations() -> None:
    out = io.StringIO()
    write(make_document(), Format.GITHUB, out, {})
    assert "::error file=kernels/relu/cuda.cu,line=7" in out.getvalue()
    assert "| case |" in out.getvalue()


def test_a_summary_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    environ = {"GITHUB_STEP_SUMMARY": str(tmp_path / "no/such/folder")}
    with pytest.raises(ConfigError, match="GITHUB_STEP_SUMMARY"):
        write(make_document(), Format.GITHUB, io.StringIO(), environ)
