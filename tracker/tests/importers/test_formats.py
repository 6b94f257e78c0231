"""What each foreign format becomes, with values worked out by hand."""

import json
import os
import platform
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tracker.errors import RecordError
from tracker.importers import Hints, read_files
from tracker.model import Result, Run, Status
from tracker.tests.factory import make_case, make_commit, make_result, sha
from tracker.tests.importers.samples import (
    ASV,
    GOOGLE_BENCHMARK,
    NVBENCH,
    PYTEST_BENCHMARK,
    copy_of,
    with_records,
    write,
)


def one(path: Path, hints: Hints | None = None) -> Run:
    (run,) = read_files([path], hints=hints).runs
    return run


def by_kernel(run: Run) -> dict[str, Result]:
    return {result.case.kernel: result for result in run.results}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "out.json"


def test_pytest_benchmark_gives_commit_machine_cases_and_samples(file: Path) -> None:
    run = one(write(file, PYTEST_BENCHMARK))
    assert run.started_at == "2026-03-02T12:00:00.123456+00:00"
    assert run.environment.backend == "cpu"
    assert run.environment.gpu_model == "AMD EPYC 9454"
    assert run.checkout.commit is not None
    assert (run.checkout.commit.sha, run.checkout.branch) == (sha(5), "main")
    assert run.checkout.commit.commit_time == "2026-03-01T10:00:00+01:00"
    results = by_kernel(run)
    copy = results["bench/test_copy.py::test_copy"]
    assert copy.measurements_s == (1e-4, 2e-4, 2e-4, 4e-4)
    assert copy.summary is not None
    assert copy.summary.median_s == 2e-4
    assert (copy.case.dtype, copy.case.parameters) == ("float32", {"size": 4096})
    assert copy.correctness.checked is False
    assert copy.reasons["correctness"]
    summed = results["bench/test_sum.py::test_sum"]
    assert summed.measurements_s == ()
    assert summed.summary is not None
    assert (summed.summary.count, summed.summary.q3_s) == (900, 2.1e-4)
    assert "--benchmark-save-data" in summed.reasons["measurements_s"]


def test_pytest_benchmark_4_tells_no_zone_and_means_utc(file: Path) -> None:
    old = {**PYTEST_BENCHMARK, "version": "4.0.0", "datetime": "2026-03-02T12:00:00.5"}
    assert one(write(file, old)).started_at == "2026-03-02T12:00:00.500000+00:00"


def test_our_records_inside_pytest_benchmark_come_whole(file: Path) -> None:
    document = with_records("cuda_vector", "torch")
    run = one(write(file, document))
    assert run.environment.gpu_model == "NVIDIA H200"
    assert run.results == tuple(
        make_result(make_case(implementation=name)) for name in ("cuda_vector", "torch")
    )
    assert run.checkout.commit is not None
    document["benchmarks"] += PYTEST_BENCHMARK["benchmarks"]
    ours, others = read_files([write(file, document)]).runs
    assert ours.results == run.results
    assert (others.environment.backend, len(others.results)) == ("cpu", 2)
    assert others.run_id == f"{ours.run_id}.2"


def test_a_gpu_model_can_be_named_where_the_file_does_not_know_it(file: Path) -> None:
    run = one(write(file, PYTEST_BENCHMARK), Hints(gpu_model="NVIDIA H200"))
    assert (run.environment.backend, run.environment.gpu_model) == ("cuda", "NVIDIA H200")


def test_a_commit_can_be_named_and_goes_before_the_file(file: Path) -> None:
    run = one(write(file, GOOGLE_BENCHMARK), Hints(commit=make_commit(9)))
    assert run.checkout.commit == make_commit(9)
    assert run.checkout.notes


def test_large_parameter_values_become_digests(file: Path) -> None:
    document = copy_of(PYTEST_BENCHMARK)
    document["benchmarks"][0]["params"] = {"data": [0.5] * 100_000, "text": "x" * 5000}
    parameters = one(write(file, document)).results[0].case.parameters
    assert set(parameters) == {"data", "text"}
    assert all(len(str(value)) < 100 for value in parameters.values())
    document["benchmarks"][0]["params"]["data"][7] = 0.25
    other = one(write(file, document)).results[0].case.parameters
    assert other["data"] != parameters["data"]
    assert other["text"] == parameters["text"]


def test_nvbench_without_samples_gives_the_mean_as_one_measurement(file: Path) -> None:
    run = one(write(file, NVBENCH))
    assert run.environment.gpu_model == "NVIDIA H200"
    assert run.environment.compute_capability == "9.0"
    assert run.environment.ecc is True
    copy, skipped = run.results
    assert copy.measurements_s == (4e-6,)
    assert copy.bytes_moved == 8_388_608  # 2.097152e12 B/s times 4 us
    assert "mean of 1000 samples" in copy.reasons["measurements_s"]
    assert copy.counters is not None
    assert copy.counters["nv/cold/sample_size"] == 1000
    assert (copy.case.dtype, copy.case.parameters) == ("F32", {"Elements": 1048576})
    assert (skipped.status, skipped.reasons["status"]) == (Status.ERROR, "not enough memory")


def test_nvbench_reads_the_samples_beside_its_file_only(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out.json-bin"
    folder.mkdir()
    (folder / "0.bin").write_bytes(struct.pack("<3f", 4e-6, 5e-6, 3e-6))
    sample = one(write(file, NVBENCH)).results[0].measurements_s
    assert sample == pytest.approx((4e-6, 5e-6, 3e-6), rel=1e-7)
    (folder / "0.bin").write_bytes(b"12345")
    with pytest.raises(RecordError, match="expected 32-bit floats"):
        read_files([file])
    (folder / "0.bin").write_bytes(struct.pack("<f", float("nan")))
    with pytest.raises(RecordError, match="NaN or infinity"):
        read_files([file])


def test_google_benchmark_gives_each_repetition_as_a_measurement(file: Path) -> None:
    run = one(write(file, GOOGLE_BENCHMARK))
    results = by_kernel(run)
    copy = results["BM_copy"]
    assert copy.measurements_s == pytest.approx((2.5e-6, 3.5e-6))
    assert copy.bytes_moved == 8192  # 4.096e9 B/s times 2 us of CPU time
    assert copy.case.parameters == {"arg0": 4096, "threads": 1}
    assert (results["BM_bad"].status, results["BM_bad"].reasons["status"]) == (
        Status.ERROR,
        "no such file",
    )
    assert run.started_at == "2026-03-02T12:00:00+01:00"


def test_google_benchmark_with_aggregates_only_gives_the_median(file: Path) -> None:
    document = copy_of(GOOGLE_BENCHMARK)
    rows = document["benchmarks"]
    document["benchmarks"] = [rows[2], {**rows[2], "aggregate_name": "median", "real_time": 2.75}]
    (result,) = one(write(file, document)).results
    assert result.measurements_s == pytest.approx((2.75e-6,))
    assert "median of repetitions" in result.reasons["measurements_s"]


def test_asv_gives_times_with_samples_failures_and_requirements(file: Path) -> None:
    run = one(write(file, ASV))
    assert run.checkout.commit is not None
    assert run.checkout.commit.sha == sha(6)
    assert run.checkout.commit.commit_time == "2026-03-02T10:00:00.000+00:00"
    assert run.started_at == "2026-03-02T11:00:00.000+00:00"
    assert dict(run.environment.libraries) == {"numpy": "1.26"}
    copied, failure, summed = run.results  # the third, NaN, was skipped
    assert copied.measurements_s == (1e-4, 2e-4, 3e-4)
    assert copied.case.parameters == {"param1": "1", "version": "abcdef0123456789"}
    assert failure.status is Status.ERROR
    assert summed.measurements_s == (5e-3,)
    assert any("peakmem_sum" in note for note in run.notes)


def test_asv_names_parameters_by_benchmarks_json_and_reads_folders(tmp_path: Path) -> None:
    machine = tmp_path / "results" / "runner-7"
    machine.mkdir(parents=True)
    write(machine / "machine.json", {"machine": "runner-7", "version": 1})
    write(machine / "1234-env.json", ASV)
    known = {"suite.Copy.time_copy": {"type": "time", "param_names": ["n"]}, "version": 2}
    write(machine.parent / "benchmarks.json", known)
    (run,) = read_files([tmp_path / "results"]).runs
    assert run.results[0].case.parameters["n"] == "1"


def test_asv_format_1_is_read(file: Path) -> None:
    old = {
        **ASV,
        "version": 1,
        "results": {
            "suite.time_a": 2e-3,
            "suite.time_b": {"result": [1e-3, None], "params": [["x", "y"]]},
        },
    }
    del old["result_columns"]
    first, second, third = one(write(file, old)).results
    assert (first.measurements_s, second.measurements_s) == ((2e-3,), (1e-3,))
    assert third.status is Status.ERROR


def test_a_time_of_zero_is_no_sample(file: Path) -> None:
    document = copy_of(PYTEST_BENCHMARK)
    document["benchmarks"][0]["stats"]["data"][0] = 0.0
    result = one(write(file, document)).results[0]
    assert (result.status, result.measurements_s) == (Status.NO_SAMPLE, ())
    assert result.reasons["status"]


@pytest.mark.parametrize("document", [PYTEST_BENCHMARK, NVBENCH, GOOGLE_BENCHMARK, ASV])
def test_the_same_bytes_give_the_same_run(file: Path, document: object) -> None:
    assert one(write(file, document)) == one(file)


def test_shards_of_one_run_are_merged_by_the_id_that_is_given(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", with_records("cuda_vector", "torch"))
    second = write(tmp_path / "b.json", with_records("torch", "triton"))
    imported = read_files([first, second], hints=Hints(run_id="nightly-7"))
    (run,) = imported.runs
    assert run.run_id == "nightly-7"
    assert [result.case.implementation for result in run.results] == [
        "cuda_vector",
        "torch",
        "triton",
    ]
    assert any("merged 2 shards" in note for note in imported.notes)
    assert any("stands in two shards, equal" in note for note in imported.notes)


def test_shards_on_two_devices_are_two_runs_of_one_id(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", with_records("torch"))
    other = with_records("torch")
    other["benchmarks"][0]["extra_info"]["bandwatch"]["device"]["uuid"] = "GPU-other"
    second = write(tmp_path / "b.json", other)
    runs = read_files([first, second], hints=Hints(run_id="nightly-7")).runs
    assert [(run.run_id, run.device.uuid[:7]) for run in runs] == [
        ("nightly-7", "GPU-111"),
        ("nightly-7.2", "GPU-oth"),
    ]


def test_shards_in_conflict_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", with_records("torch"))
    changed = with_records("torch")
    changed["benchmarks"][0]["extra_info"]["bandwatch"]["result"]["bytes_moved"] = 1
    second = write(tmp_path / "b.json", changed)
    with pytest.raises(RecordError, match="two different results of"):
        read_files([first, second], hints=Hints(run_id="nightly-7"))


def test_a_run_from_a_file_is_no_complete_suite(file: Path) -> None:
    run = one(write(file, PYTEST_BENCHMARK))
    assert run.complete is False
    assert run.notes == ("imported from pytest-benchmark 5.1.0",)
    assert json.loads(file.read_text())["version"] == "5.1.0"
    assert replace(run, complete=True) != run


def test_a_file_that_pytest_benchmark_itself_wrote_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark")
    (tmp_path / "test_sum.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [10, 100])\n"
        "def test_sum(benchmark, n):\n"
        "    benchmark.pedantic(sum, args=(range(n),), rounds=7)\n"
    )
    plugins = ["-p", "no:tracker.pytest_plugin", "-p", "no:perftests.plugin"]
    flags = ["--benchmark-json=out.json", "--benchmark-save-data"]
    # As a worker of xdist, which our own tests may run in, it would measure nothing.
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *flags],
        cwd=tmp_path,
        env=outside,
        check=True,
        capture_output=True,
    )
    run = one(tmp_path / "out.json")
    assert [r.case.parameters for r in run.results] == [{"n": 10}, {"n": 100}]
    assert [len(r.measurements_s) for r in run.results] == [7, 7]
    assert run.environment.python == platform.python_version()
