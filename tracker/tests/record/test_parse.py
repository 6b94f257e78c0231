"""The record: what is read comes back equal, and what is wrong is told in one line."""

import copy
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.errors import RecordError
from tracker.model import Correctness, Inputs, Status
from tracker.record import (
    MAX_BYTES,
    digest,
    dump_envelope,
    dump_run,
    load_run,
    parse_envelope,
    parse_run,
    write_run,
)
from tracker.record.parse import Envelope
from tracker.store import Store
from tracker.tests.factory import DEVICE, H200, make_case, make_result, make_run, sha


def document(**more: Any) -> Any:
    return copy.deepcopy(json.loads(json.dumps({**dump_run(make_run()), **more})))


def refused(data: object) -> str:
    with pytest.raises(RecordError) as caught:
        parse_run(data, "run.json")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("cannot read run.json")
    assert len(message) < 500
    return message


def with_change(path: str, value: object) -> Any:
    data = document()
    *steps, last = path.split(".")
    target = data
    for step in steps:
        target = target[int(step) if step.isdigit() else step]
    target[int(last) if last.isdigit() else last] = value
    return data


def test_a_run_comes_back_equal() -> None:
    run = make_run()
    assert parse_run(document()) == run
    assert parse_run(json.dumps(document()).encode()) == run


def test_what_a_kernel_was_given_and_the_flush_come_back_equal() -> None:
    inputs = Inputs(20261129, 21261132, "standard normal", specials=True)
    run = make_run(results=(make_result(inputs=inputs, flush_bytes=157286400),))
    told = dump_run(run)["results"][0]
    assert told["inputs"] == {
        "seed": 20261129,
        "fresh_seed": 21261132,
        "distribution": "standard normal",
        "specials": True,
    }
    assert told["flush_bytes"] == 157286400
    assert parse_run(json.loads(json.dumps(dump_run(run)))) == run
    assert parse_run(with_change("results.0.inputs", {"seed": 7.0})).results[0].inputs == Inputs(7)


def test_a_record_of_before_inputs_and_flush_keeps_its_digest() -> None:
    run = make_run()
    assert {"inputs", "flush_bytes"}.isdisjoint(document()["results"][0])
    assert digest(run) == "9665a4f88558118fbb80e0d3a62c20e774db0e8eb708a61c98e30b5d1e26813c"
    for name in ("inputs", "flush_bytes"):
        assert digest(parse_run(with_change(f"results.0.{name}", None))) == digest(run)
    given = replace(run.results[0], flush_bytes=1)
    assert digest(replace(run, results=(given, run.results[1]))) != digest(run)


def test_an_envelope_comes_back_equal() -> None:
    envelope = Envelope(H200, DEVICE, make_result())
    assert parse_envelope(json.loads(json.dumps(dump_envelope(envelope)))) == envelope


def test_absent_and_null_fields_are_the_same_run() -> None:
    data = document()
    for name in ("command", "ci", "notes"):
        data.pop(name)
    explicit = document(command=None, ci={}, notes=[])
    assert digest(parse_run(data)) == digest(parse_run(explicit))


def test_the_digest_ignores_order_and_sees_the_last_bit_of_a_measurement() -> None:
    run = make_run()
    assert digest(replace(run, results=run.results[::-1])) == digest(run)
    sample = list(run.results[0].measurements_s)
    sample[0], sample[1] = sample[1], sample[0]
    other = replace(run.results[0], measurements_s=tuple(sample))
    assert digest(replace(run, results=(other, run.results[1]))) != digest(run)


def test_whole_numbers_and_floats_are_one_value() -> None:
    data = with_change("environment.power_limit_w", 700)
    assert digest(parse_run(data)) == digest(make_run())


@given(
    st.dictionaries(
        st.text("abc", min_size=1), st.floats(allow_nan=False, allow_infinity=False), max_size=9
    )
)
def test_every_finite_float_survives_the_round_trip(readings: dict[str, float]) -> None:
    run = make_run(results=(replace(make_result(), energy=readings),))
    assert parse_run(json.dumps(dump_run(run)).encode()) == run


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (b"", "not JSON at line 1 column 1"),
        (b"{", "not JSON"),
        (b'{"schema": 1, "schema": 1}', "duplicate key 'schema'"),
        (b'{"schema": NaN}', "NaN is not JSON"),
        (b'{"schema": -Infinity}', "-Infinity is not JSON"),
        (b'{"schema": 1e999}', "beyond a 64-bit float"),
        (b'{"schema": 9223372036854775808}', "beyond 64 bits"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "beyond 64 bits"),
        (b'{"schema": "\\u0000"}', "NUL"),
        (b'{"schema": "\\ud800"}', "surrogate"),
        (b'{"schema": "\xff"}', "byte 12 is not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b"[]", "expected a JSON object"),
        (b"{}", "schema is None; expected 1"),
        (b'{"schema": true}', "schema is True; expected 1"),
        (b'{"schema": 1.0}', "schema is 1.0; expected 1"),
        (b'{"schema": 2}', "record schema 2; this version reads up to 1; upgrade bandwatch"),
        (b'{"schema": 1, "kind": "result"}', "must contain"),
    ],
)
def test_text_that_is_no_record_is_refused(text: bytes, part: str) -> None:
    assert part in refused(text)


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ("run_id", "short", "run_id must match pattern"),
        ("run_id", "../../etc/passwd", "run_id must match"),
        (
            "started_at",
            "2026-13-01T00:00:00Z",
            "started_at is '2026-13-01T00:00:00Z'; expected a date that exists",
        ),
        ("started_at", "yesterday", "started_at must match"),
        ("results.0.case.shape", [-1], "results[0].case.shape[0] must be"),
        ("results.1.case.parameters", {"x": [1, 2]}, "results[1].case.parameters.x must be"),
        ("results.0.status", "fine", "results[0].status must be one of"),
        (
            "results.0.measurements_s",
            [1e-4, 0],
            "results[0].measurements_s[1] must be above 0; found 0",
        ),
        (
            "results.0.measurements_s",
            [1e-4, True],
            "results[0].measurements_s[1] must be a number; found True",
        ),
        (
            "results.0.measurements_s",
            [1e-4, "1"],
            "results[0].measurements_s[1] must be a number; found '1'",
        ),
        (
            "results.0.measurements_s",
            [1e-4, None],
            "results[0].measurements_s[1] must be a number; found None",
        ),
        ("results.0.measurements_s", [1e-4], "results[0].summary.count is 6 for 1 measurements"),
        ("results.0.measurements_s", [], "results[0] has a summary without measurements"),
        ("results.0.summary", None, "results[0].summary is null beside 6 measurements"),
        (
            "results.0.summary.median_s",
            1.3001e-4,
            "results[0].summary.median_s is 0.00013001 but its measurements give",
        ),
        ("results.0.summary.stddev_s", 0, "results[0].summary.stddev_s is 0 but"),
        ("results.0.summary.q1_s", 1.4e-4, "results[0].summary is not in order"),
        (
            "results.0.correctness",
            {"checked": False},
            "status is ok although correctness was not checked",
        ),
        (
            "results.0.correctness",
            {"checked": True},
            "correctness says checked True but passed None",
        ),
        (
            "results.0.correctness",
            {"checked": True, "passed": False},
            "status is ok although correctness failed",
        ),
        ("results.0.status", "incorrect", "status is incorrect but correctness.passed is True"),
        ("results.0.status", "error", "status is error but it carries measurements"),
        ("checkout.commit.sha", "abc", "checkout.commit.sha must match"),
        ("checkout.commit.parents", [sha(1)], "parents names the commit itself"),
        ("checkout.commit.author_time", "2026-02-30T00:00:00Z", "expected a date that exists"),
        ("environment.gpu_model", "", "environment.gpu_model must be longer"),
        ("device", {}, "device must contain"),
        ("results.0.inputs", {}, "results[0].inputs must contain ['seed']"),
        ("results.0.inputs", {"seed": "1"}, "results[0].inputs.seed must be integer; found '1'"),
        ("results.0.inputs", {"seed": 1, "specials": 1}, "inputs.specials must be boolean or null"),
        ("results.0.inputs", {"seed": 1, "zeros": True}, "must not contain {'zeros'}"),
        ("results.0.flush_bytes", -1, "results[0].flush_bytes must be bigger than or equal to 0"),
        ("surprise", 1, "must not contain {'surprise'}"),
    ],
)
def test_a_bad_field_is_named_by_its_path(path: str, value: object, part: str) -> None:
    assert part in refused(with_change(path, value))


def test_one_case_twice_in_a_run_is_refused() -> None:
    data = document()
    twin = copy.deepcopy(data["results"][0])
    twin["case"]["parameters"] = {}
    data["results"].append(twin)
    assert "results[2].case is that of results[0]" in refused(data)


def test_the_order_of_parameters_is_no_part_of_a_case() -> None:
    data = document()
    data["results"][0]["case"]["parameters"] = {"a": 1, "b": 2}
    data["results"][1] = copy.deepcopy(data["results"][0])
    data["results"][1]["case"]["parameters"] = {"b": 2, "a": 1}
    assert "results[1].case is that of results[0]" in refused(data)


def fingerprint_of(**case: object) -> str:
    data = document()
    data["results"] = data["results"][:1]
    data["results"][0]["case"] |= case
    whole = parse_run(json.dumps(data).encode())
    envelope = {"schema": 1, "kind": "result", "environment": data["environment"]}
    alone = parse_envelope({**envelope, "device": data["device"], "result": data["results"][0]})
    assert alone.result.case.fingerprint == whole.results[0].case.fingerprint
    return whole.results[0].case.fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"parameters": {"scale": 1}}, {"parameters": {"scale": 1.0}}),
        ({"parameters": {"scale": 0}}, {"parameters": {"scale": -0.0}}),
        ({"parameters": {"n": 4096}}, {"parameters": {"n": 4.096e3}}),
        ({"kernel": "caf\u00e9"}, {"kernel": "cafe\u0301"}),
        ({"parameters": {"\u00e5": "\u00e5"}}, {"parameters": {"a\u030a": "a\u030a"}}),
    ],
)
def test_values_that_are_equal_are_one_case(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert fingerprint_of(**one) == fingerprint_of(**other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"parameters": {"scale": 1}}, {"parameters": {"scale": True}}),
        ({"parameters": {"scale": 1}}, {"parameters": {"scale": "1"}}),
        ({"parameters": {"scale": 1}}, {"parameters": {"scale": 1.0000000000000002}}),
        ({"parameters": {"n": 2**53 + 1}}, {"parameters": {"n": 2.0**53}}),
        ({"parameters": {"a": "b", "c": "d"}}, {"parameters": {"a": "b c=d"}}),
        ({"kernel": "a/b", "implementation": "c"}, {"kernel": "a", "implementation": "b/c"}),
        ({"kernel": "relu"}, {"kernel": "relu "}),
        ({"kernel": "\u212b"}, {"kernel": "A"}),
        ({"kernel": "x" * 200}, {"kernel": "x" * 199 + "y"}),
        ({"shape": [1, 23]}, {"shape": [12, 3]}),
        ({"version": 1}, {"version": 2}),
    ],
)
def test_values_that_differ_are_two_cases(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert fingerprint_of(**one) != fingerprint_of(**other)


def test_parameters_of_one_name_in_two_spellings_are_refused() -> None:
    data = with_change("results.0.case.parameters", {"\u00e5": 1, "a\u030a": 2})
    with pytest.raises(RecordError, match="two of its parameters have one name"):
        parse_run(data)


def test_a_name_that_grows_too_long_in_its_one_spelling_is_refused(store: Store) -> None:
    # U+0958 has no composed form: NFC makes two characters of it.
    run = parse_run(with_change("results.0.case.kernel", "\u0958" * 200))
    with pytest.raises(RecordError, match="kernel"):
        store.record(run)


def test_a_sample_of_one_has_no_spread() -> None:
    run = make_run(results=(make_result(sample=[1e-4]),))
    assert parse_run(dump_run(run)) == run


def test_an_incorrect_result_stores_no_time() -> None:
    wrong = replace(
        make_result(make_case("add")),
        status=Status.INCORRECT,
        measurements_s=(),
        summary=None,
        correctness=Correctness(checked=True, passed=False, worst_error=2.5, bound=0.0),
        reasons={"measurements_s": "the output is wrong"},
    )
    run = make_run(results=(wrong,))
    assert parse_run(dump_run(run)) == run


def test_a_file_above_the_limit_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    with pytest.raises(RecordError, match=r"52,428,800 bytes; expected at most 33,554,432"):
        load_run(path)


def test_the_limit_holds_for_input_without_a_size() -> None:
    with pytest.raises(RecordError, match=f"expected at most {MAX_BYTES:,}"):
        load_run("/dev/zero")


def test_a_missing_file_or_a_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        load_run(tmp_path / "none.json")
    with pytest.raises(RecordError, match="Is a directory"):
        load_run(tmp_path)


def test_a_written_record_is_read_back(tmp_path: Path) -> None:
    write_run(make_run(), tmp_path / "run.json")
    assert load_run(tmp_path / "run.json") == make_run()
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_a_run_with_nan_is_not_written(tmp_path: Path) -> None:
    run = make_run(results=(replace(make_result(), median_cycles=float("nan")),))
    with pytest.raises(RecordError, match="expected null"):
        write_run(run, tmp_path / "run.json")
    assert not list(tmp_path.iterdir())


def test_a_million_names_with_one_twice_are_refused_at_once() -> None:
    text = ",".join(f'"{n}":0' for n in range(300_000))
    began = time.monotonic()
    with pytest.raises(RecordError, match="duplicate key '299999'"):
        parse_run(f'{{{text},"299999":1}}'.encode())
    assert time.monotonic() - began < 20
