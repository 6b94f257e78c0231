"""The doctor: what it sees, what it says is missing, when it calls a machine unfit."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracker.config import StoreChoice
from tracker.doctor import packages
from tracker.doctor.checkout import check_kernels, kernels_folder
from tracker.doctor.devices import Gpu, GpuSurvey, survey_gpus
from tracker.doctor.examine import doctor_document
from tracker.doctor.finding import Finding, Level
from tracker.doctor.locks import check_locks
from tracker.doctor.measured import plan
from tracker.doctor.packages import Torch, check_packages, install_command, probe_torch
from tracker.doctor.storage import check_store
from tracker.doctor.tools import check_tools, tool_version
from tracker.errors import ExitCode
from tracker.report.text import to_text
from tracker.store.store import Store
from tracker.tests.factory import make_run

H200 = Gpu(0, "NVIDIA H200", "GPU-1", 143 << 30, "9.0", 700.0, True, False, True, 0)
WITH_GPU = GpuSurvey((H200,), "580.95.05", "13.0", "NVML")
NO_GPU = GpuSurvey(problem="NVML cannot start")
CUDA_TORCH = Torch("2.13.0", "13.0", available=True)
CPU_TORCH = Torch("2.13.0+cpu", None)


class FakeNvml:
    """NVML with one board that does not know every question."""

    class NVMLError(Exception):
        """As pynvml raises it."""

    def __init__(self, *, starts: bool = True) -> None:
        self.starts = starts
        self.open = 0

    def nvmlInit(self) -> None:
        if not self.starts:
            raise self.NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlSystemGetDriverVersion": b"580.95.05",
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetUUID": "GPU-1",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=143 << 30),
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetPowerManagementLimit": 700_000,
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetComputeRunningProcesses": [],
        }

        def answer(*_: object) -> Any:
            if name not in answers:
                raise self.NVMLError("Not Supported")
            return answers[name]

        return answer


def levels(findings: Sequence[Finding]) -> dict[str, Level]:
    return {finding.name: finding.level for finding in findings}


def test_nvml_is_asked_and_what_a_board_does_not_know_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    survey = survey_gpus()

    assert (survey.driver, survey.cuda, survey.source) == ("580.95.05", "13.0", "NVML")
    (gpu,) = survey.gpus
    assert gpu.power_limit_w == 700.0
    assert gpu.compute_capability == "9.0"
    assert (gpu.ecc, gpu.mig, gpu.persistence) == (True, None, None)
    assert nvml.open == 0


def test_without_nvml_nvidia_smi_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(starts=False))
    line = "0, NVIDIA H200, GPU-1, 143771, 580.95.05, 9.0\n"
    monkeypatch.setattr(
        "tracker.doctor.devices.subprocess.run",
        lambda *_, **__: SimpleNamespace(stdout=line, returncode=0),
    )
    survey = survey_gpus()
    assert survey.source == "nvidia-smi"
    assert survey.driver == "580.95.05"
    assert survey.gpus[0].memory_bytes == 143771 << 20


def test_without_both_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(starts=False))
    monkeypatch.setattr("tracker.doctor.devices.subprocess.run", missing)
    assert survey_gpus().problem == (
        "NVML cannot start: Driver Not Loaded; nvidia-smi is not there either"
    )


def test_a_failing_nvidia_smi_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(9, "nvidia-smi")

    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(starts=False))
    monkeypatch.setattr("tracker.doctor.devices.subprocess.run", failing)
    assert "nvidia-smi failed" in str(survey_gpus().problem)


def test_the_gpu_is_measured_when_torch_can_use_it() -> None:
    planned = plan(WITH_GPU, CUDA_TORCH, "a CPU")
    assert planned.device == "the GPU NVIDIA H200"
    assert Level.FAIL not in levels(planned.findings).values()


def test_without_a_gpu_the_cpu_is_measured_and_that_is_said() -> None:
    assert plan(NO_GPU, CPU_TORCH, "a CPU").device == "the CPU a CPU (no NVIDIA GPU)"


def test_a_cpu_build_of_torch_beside_a_gpu_is_warned_of() -> None:
    planned = plan(WITH_GPU, CPU_TORCH, "a CPU")
    assert planned.device == "the CPU a CPU (torch cannot use the GPU)"
    assert levels(planned.findings)["torch"] is Level.WARN


def test_without_torch_nothing_is_measured() -> None:
    planned = plan(NO_GPU, Torch(problem="No module named 'torch'"), "a CPU")
    assert planned.device is None
    assert levels(planned.findings)["torch"] is Level.FAIL


def test_other_users_and_missing_persistence_are_warned_of() -> None:
    busy = Gpu(0, "NVIDIA H200", "GPU-1", persistence=False, other_processes=2)
    found = levels(plan(GpuSurvey((busy,), "580", None, "NVML"), CUDA_TORCH, "").findings)
    assert found["GPU 0 users"] is Level.WARN
    assert found["GPU 0 persistence mode"] is Level.WARN


def test_torch_is_asked_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_PROBE", "import sys; sys.exit('broken: no libcudart')")
    assert probe_torch().problem == "broken: no libcudart"
    monkeypatch.setattr(packages, "_PROBE", "import os; os.abort()")
    assert probe_torch().problem == "exit status -6"
    monkeypatch.setattr(
        packages, "_PROBE", 'print(\'noise\\n{"version": "9", "cuda": null, "available": false}\')'
    )
    assert probe_torch() == Torch("9")


def test_missing_packages_come_with_the_command_that_gets_them() -> None:
    findings = check_packages(gpu=True, cuda="12.8", look=lambda _: None)
    by_name = {finding.name: finding for finding in findings}
    assert by_name["pytest"].level is Level.FAIL
    assert by_name["cupy-cuda13x"].level is Level.WARN
    assert by_name["streamlit"].level is Level.INFO
    assert str(by_name["cupy-cuda13x"].fix).endswith("-m pip install 'cupy-cuda12x>=13.4'")
    assert str(by_name["psycopg"].fix).endswith("-m pip install 'psycopg[binary]>=3.2'")
    assert str(by_name["triton"].fix).endswith("-m pip install 'triton'")
    assert "'cupy-cuda13x>=13.6' 'nvidia-cuda-nvrtc<13.1,>=13.0'" in install_command("gpu", "13.0")
    # A name that nobody has claimed on the index must not be installed.
    assert "bandwatch" not in " ".join(
        str(finding.fix).partition(" -m ")[2] for finding in findings
    )


def test_gpu_packages_matter_only_where_there_is_a_gpu() -> None:
    findings = check_packages(gpu=False, cuda=None, look=lambda _: None)
    cupy = next(finding for finding in findings if finding.name == "cupy-cuda13x")
    assert cupy.level is Level.INFO
    assert cupy.fix is None


def test_another_name_of_a_package_counts() -> None:
    found = {"cupy-cuda12x": "13.6.0"}
    findings = check_packages(gpu=True, cuda=None, look=found.get)
    assert Finding("packages", "cupy-cuda12x", Level.OK, "13.6.0") in findings


def test_tools_are_optional_but_the_compiler_is_needed_on_a_cpu() -> None:
    found = levels(check_tools(gpu=False, look=lambda _: None))
    assert found == {"g++": Level.WARN, "nvcc": Level.INFO, "ncu": Level.INFO}
    assert levels(check_tools(gpu=True, look=lambda _: None))["g++"] is Level.INFO
    assert set(levels(check_tools(gpu=True, look=lambda _: "1.2")).values()) == {Level.OK}


def test_a_tool_s_version_is_read_from_what_it_prints() -> None:
    code = "print('nvcc: NVIDIA (R)'); print('Cuda compilation tools, release 13.0, V13.0.88')"
    assert tool_version([sys.executable, "-c", code]) == "13.0"
    assert tool_version([sys.executable, "-c", "import sys; sys.exit(1)"]) is None
    assert tool_version(["no-such-tool-here"]) is None


def test_this_checkout_s_kernels_are_recognised() -> None:
    root = Path(__file__).parents[2]
    assert check_kernels(root, root / "kernels").level is Level.OK


def test_another_distribution_s_kernels_fail_clearly(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    finding = check_kernels(tmp_path, Path("/usr/lib/python3/site-packages/kernels"))
    assert finding.level is Level.FAIL
    assert "not this checkout's" in finding.found
    assert "pip uninstall kernels" in str(finding.fix)


def test_the_location_is_found_without_importing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "kernels", raising=False)
    assert kernels_folder() == tmp_path / "kernels"


def test_a_machine_without_a_suite_is_told_what_it_can_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracker.doctor.checkout.kernels_folder", lambda: None)
    assert "record and show" in check_kernels(tmp_path).found
    (tmp_path / "kernels").mkdir()
    assert "cannot be imported" in check_kernels(tmp_path).found


def test_a_project_of_its_own_measures_its_own_suite(tmp_path: Path) -> None:
    (tmp_path / "perf").mkdir()
    elsewhere = Path("/usr/lib/python3/site-packages/kernels")
    found = check_kernels(tmp_path, elsewhere, suite=("perf",))
    assert (found.level, found.found) == (Level.OK, str(tmp_path / "perf"))
    assert check_kernels(tmp_path, elsewhere, suite=("gone",)).level is Level.FAIL
    # In a checkout of Bandwatch the suite is of its kernels.
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/registry.py").touch()
    assert check_kernels(tmp_path, elsewhere, suite=("perf",)).level is Level.FAIL


def test_a_store_is_counted_and_never_made(tmp_path: Path) -> None:
    choice = StoreChoice(f"sqlite:///{tmp_path}/a/b.db", "the flag")
    assert [f.level for f in check_store(choice)] == [Level.OK, Level.INFO]
    assert list(tmp_path.iterdir()) == []

    with Store.open(choice.url) as store:
        store.record(make_run())
    found = {finding.name: finding.found for finding in check_store(choice)}
    assert found["content"].startswith("1 run, 2 results, 2 cases")
    assert found["schema"] == "version 0001, revision 1"


def test_a_damaged_store_is_a_warning_without_credentials(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database at all" * 100)
    finding = check_store(StoreChoice(f"sqlite:///{tmp_path}/x.db", "the flag"))[-1]
    assert finding.level is Level.WARN
    server = StoreChoice("postgresql://me:hunter2@localhost:1/db", "the flag")
    assert not any("hunter2" in finding.found for finding in check_store(server))


def test_a_held_lock_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "bandwatch-GPU-1.lock"
    path.write_text(json.dumps({"pid": 42, "user": "ada", "since": "now"}))
    assert check_locks(tmp_path)[0].found == "nobody is measuring"
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (finding,) = check_locks(tmp_path)
    assert (finding.name, finding.level) == ("GPU-1", Level.WARN)
    assert "process 42 of ada" in finding.found


def test_a_failure_makes_the_machine_unfit_and_each_cure_is_shown() -> None:
    bad = Finding("packages", "torch", Level.FAIL, "not installed", "pip install x")
    document = doctor_document([bad], "the CPU")
    assert document.exit_code == ExitCode.UNFIT
    shown = to_text(document, width=100)
    assert "nothing can be measured: torch not installed" in shown
    assert "to mend it: pip install x" in shown


def test_warnings_alone_leave_it_fit() -> None:
    warning = Finding("device", "torch", Level.WARN, "CPU only")
    document = doctor_document([warning], "the CPU a CPU")
    assert document.exit_code == ExitCode.OK
    assert document.summary == "would measure the CPU a CPU"


@pytest.mark.parametrize("text", ["[]", '"x"', "3", "null"])
def test_a_held_lock_with_rubbish_in_it_is_held_by_another_process(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "bandwatch-GPU-1.lock"
    path.write_text(text)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (finding,) = check_locks(tmp_path)
    assert finding.found == "held by another process"


def test_what_is_no_lock_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "bandwatch-GPU-1.lock")
    (finding,) = check_locks(tmp_path)
    assert finding.found.endswith("is no regular file")
