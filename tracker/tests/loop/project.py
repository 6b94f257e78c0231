"""A small project with a suite of its own, for tests that start real measuring processes.

Its fixture stands in for the harness: it attaches a record whose speed a file in the commit gives.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from tracker.tests.loop import fake

CONFTEST = """
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tracker.model import Case
from tracker.record import Envelope, dump_envelope
from tracker.tests.sides import BOARD, H200, make_result

HERE = Path(__file__).parent


@pytest.fixture
def gpu_benchmark(request):
    def measure(kernel):
        assert "nothing of ours" not in str(HERE)
        level = json.loads((HERE / "speeds.json").read_text())[kernel]
        case = Case(kernel, "cuda_vector", "float32", (1 << 24,))
        result = make_result(case=case, center_s=level * 1e-4, bytes_moved=8 << 24)
        reasons = {"correctness": "a stand-in computes nothing"}
        result = replace(result, test=request.node.nodeid, reasons=reasons)
        envelope = dump_envelope(Envelope(H200, BOARD, result))
        request.node.user_properties.append(("bandwatch", envelope))
    return measure
"""
SUITE = """
import os
import pytest

def test_relu(gpu_benchmark):
    gpu_benchmark("relu")

def test_add(gpu_benchmark):
    if os.environ.get("CRASH_IN_ADD"):
        os._exit(9)
    gpu_benchmark("add")

def test_of_no_speed():
    raise AssertionError("the suite's other tests are not run")
"""
RELU = "perf/test_perf.py::test_relu"
ADD = "perf/test_perf.py::test_add"
FILES = {
    "conftest.py": CONFTEST,
    "perf/test_perf.py": SUITE,
    "pyproject.toml": '[tool.bandwatch]\nsuite = ["perf"]\n',
    ".gitignore": ".bandwatch/\n__pycache__/\n.pytest_cache/\n",
}


def make(root: Path, speeds: Mapping[str, float] | None = None) -> str:
    """Make the project with one commit; return its id."""
    root.mkdir(parents=True)
    fake.git(root, "init", "--quiet", "--initial-branch=main")
    return change(root, FILES, speeds or {"relu": 1.0, "add": 1.0})


def change(root: Path, files: Mapping[str, str], speeds: Mapping[str, float]) -> str:
    """Commit files and speeds; return the commit's id."""
    return fake.commit(root, "Change", {**files, "speeds.json": json.dumps(speeds)})
