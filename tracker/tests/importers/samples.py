"""Small files as other tools write them, made up here, and ways to change them."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from tracker.record import dump_envelope
from tracker.record.parse import Envelope
from tracker.tests.factory import DEVICE, H200, make_case, make_result, sha

PYTEST_BENCHMARK: dict[str, Any] = {
    "machine_info": {
        "node": "runner-7",
        "processor": "x86_64",
        "machine": "x86_64",
        "python_version": "3.12.3",
        "release": "6.8.0",
        "system": "Linux",
        "cpu": {"brand_raw": "AMD EPYC 9454", "hz_advertised": [2750000000, 0]},
    },
    "commit_info": {
        "id": sha(5),
        "time": "2026-03-01T10:00:00+01:00",
        "author_time": "2026-03-01T09:00:00+01:00",
        "dirty": False,
        "project": "kernels",
        "branch": "main",
    },
    "benchmarks": [
        {
            "group": None,
            "name": "test_copy[4096-float32]",
            "fullname": "bench/test_copy.py::test_copy[4096-float32]",
            "params": {"size": 4096, "dtype": "float32"},
            "param": "4096-float32",
            "extra_info": {"note": "warm"},
            "options": {"timer": "perf_counter", "min_rounds": 5},
            "stats": {
                "min": 1e-4,
                "max": 4e-4,
                "mean": 2.25e-4,
                "stddev": 1.2583057392117917e-4,
                "rounds": 4,
                "median": 2e-4,
                "iqr": 1e-4,
                "q1": 1.5e-4,
                "q3": 2.5e-4,
                "ops": 4444.4,
                "total": 9e-4,
                "iterations": 1,
                "data": [1e-4, 2e-4, 2e-4, 4e-4],
            },
        },
        {
            "group": None,
            "name": "test_sum",
            "fullname": "bench/test_sum.py::test_sum",
            "params": None,
            "param": None,
            "extra_info": {},
            "options": {"timer": "perf_counter"},
            "stats": {
                "min": 1e-4,
                "max": 4e-4,
                "mean": 2e-4,
                "stddev": 1e-5,
                "rounds": 900,
                "median": 1.9e-4,
                "q1": 1.8e-4,
                "q3": 2.1e-4,
                "iterations": 1,
            },
        },
    ],
    "datetime": "2026-03-02T12:00:00.123456+00:00",
    "version": "5.1.0",
}

NVBENCH: dict[str, Any] = {
    "meta": {"argv": ["./copy"], "version": {"nvbench": {"string": "0.1.0"}}},
    "devices": [
        {
            "id": 0,
            "name": "NVIDIA H200",
            "sm_version": 900,
            "number_of_sms": 132,
            "global_memory_size": 150_000_000_000,
            "l2_cache_size": 62914560,
            "ecc_state": True,
        }
    ],
    "benchmarks": [
        {
            "name": "copy",
            "index": 0,
            "devices": [0],
            "states": [
                {
                    "name": "Device=0 T=F32 Elements=2^20",
                    "device": 0,
                    "axis_values": [
                        {"name": "T", "type": "string", "value": "F32"},
                        {"name": "Elements", "type": "int64", "value": "1048576"},
                    ],
                    "summaries": [
                        {
                            "tag": "nv/cold/sample_size",
                            "data": [{"name": "value", "type": "int64", "value": "1000"}],
                        },
                        {
                            "tag": "nv/cold/time/gpu/mean",
                            "hint": "duration",
                            "data": [{"name": "value", "type": "float64", "value": "4.0e-06"}],
                        },
                        {
                            "tag": "nv/cold/bw/global/bytes_per_second",
                            "data": [{"name": "value", "type": "float64", "value": "2.097152e12"}],
                        },
                        {
                            "tag": "nv/json/bin:nv/cold/sample_times",
                            "hint": "file/sample_times",
                            "data": [
                                {"name": "filename", "type": "string", "value": "out-bin/0.bin"},
                                {"name": "size", "type": "int64", "value": "3"},
                            ],
                        },
                    ],
                    "is_skipped": False,
                },
                {
                    "name": "Device=0 T=F64 Elements=2^20",
                    "device": 0,
                    "axis_values": [
                        {"name": "T", "type": "string", "value": "F64"},
                        {"name": "Elements", "type": "int64", "value": "1048576"},
                    ],
                    "summaries": [],
                    "is_skipped": True,
                    "skip_reason": "not enough memory",
                },
            ],
        }
    ],
}

GOOGLE_BENCHMARK: dict[str, Any] = {
    "context": {
        "date": "2026-03-02T12:00:00+01:00",
        "host_name": "runner-7",
        "executable": "./copy_bench",
        "num_cpus": 64,
        "mhz_per_cpu": 2750,
        "library_version": "v1.9.0",
        "library_build_type": "release",
        "json_schema_version": 1,
    },
    "benchmarks": [
        {
            "name": "BM_copy/4096/threads:1",
            "run_name": "BM_copy/4096/threads:1",
            "run_type": "iteration",
            "repetitions": 2,
            "repetition_index": index,
            "threads": 1,
            "iterations": 1000,
            "real_time": time,
            "cpu_time": 2.0,
            "time_unit": "us",
            "bytes_per_second": 4.096e9,
        }
        for index, time in enumerate((2.5, 3.5))
    ]
    + [
        {
            "name": "BM_copy/4096/threads:1_mean",
            "run_name": "BM_copy/4096/threads:1",
            "run_type": "aggregate",
            "aggregate_name": "mean",
            "real_time": 3.0,
            "cpu_time": 2.0,
            "time_unit": "us",
        },
        {
            "name": "BM_bad",
            "run_name": "BM_bad",
            "run_type": "iteration",
            "error_occurred": True,
            "error_message": "no such file",
        },
    ],
}

ASV: dict[str, Any] = {
    "commit_hash": sha(6),
    "env_name": "virtualenv-py3.12-numpy1.26",
    "date": 1772445600000,
    "params": {
        "arch": "x86_64",
        "cpu": "AMD EPYC 9454",
        "machine": "runner-7",
        "num_cpu": "64",
        "os": "Linux 6.8",
        "ram": "512",
        "python": "3.12",
    },
    "python": "3.12",
    "requirements": {"numpy": "1.26"},
    "env_vars": {},
    "result_columns": [
        "result",
        "params",
        "version",
        "started_at",
        "duration",
        "stats_ci_99_a",
        "stats_ci_99_b",
        "stats_q_25",
        "stats_q_75",
        "stats_number",
        "stats_repeat",
        "samples",
        "profile",
    ],
    "results": {
        "suite.Copy.time_copy": [
            [2e-4, None, float("nan")],
            [["1", "2", "3"]],
            "abcdef0123456789" * 4,
            1772449200000,
            1.5,
            [1e-4, None, None],
            [3e-4, None, None],
            [1.5e-4, None, None],
            [2.5e-4, None, None],
            [10, None, None],
            [3, None, None],
            [[1e-4, 2e-4, 3e-4], None, None],
        ],
        "suite.time_sum": [[5e-3], [], "1" * 64],
        "suite.peakmem_sum": [[1e8], [], "2" * 64],
    },
    "durations": {},
    "version": 2,
}


def copy_of(document: dict[str, Any]) -> dict[str, Any]:
    return deepcopy(document)


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def with_records(*implementations: str) -> dict[str, Any]:
    """A pytest-benchmark file of our own suite: one benchmark with our record for each."""
    document = copy_of(PYTEST_BENCHMARK)
    plain = document["benchmarks"][0]
    document["benchmarks"] = [
        {
            **plain,
            "fullname": f"perftests/test_relu.py::test_relu[{name}]",
            "extra_info": {"bandwatch": dump_envelope(_envelope(name))},
        }
        for name in implementations
    ]
    return document


def _envelope(implementation: str) -> Envelope:
    result = make_result(make_case(implementation=implementation))
    return Envelope(H200, DEVICE, result)
