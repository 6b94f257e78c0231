"""Compiling and its cache."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernels import build, cache, host

SOURCE = '#include "prelude.cuh"\nKERNEL(32, nothing, (int* p)) { p[threadIdx.x] = 1; }\n'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "sample" / "cuda.cu"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def test_a_second_build_comes_from_disk(source: Path) -> None:
    first = build.compile_cubin(source, "sm_90")
    second = build.compile_cubin(source, "sm_90")
    assert first.compile_s is not None
    assert second.compile_s is None
    assert first.code == second.code
    assert first.fingerprint == second.fingerprint


def test_the_fingerprint_follows_the_code_and_not_the_comments(source: Path) -> None:
    first = build.compile_cubin(source, "sm_90")
    source.write_text(SOURCE + "// a comment\n")
    commented = build.compile_cubin(source, "sm_90")
    source.write_text(SOURCE.replace("= 1", "= 2"))
    changed = build.compile_cubin(source, "sm_90")
    assert commented.compile_s is not None
    assert first.fingerprint == commented.fingerprint != changed.fingerprint


def test_other_options_and_architectures_are_other_builds(source: Path) -> None:
    codes = {
        build.compile_cubin(source, "sm_90").code,
        build.compile_cubin(source, "sm_80").code,
        build.compile_cubin(source, "sm_90", ("-lineinfo",)).code,
    }
    assert len(codes) == 3


def test_a_bad_source_is_told_with_the_compilers_words(source: Path) -> None:
    source.write_text(SOURCE.replace("int* p", "nosuch* p"))
    with pytest.raises(build.BuildError, match=r"(?s)cannot compile cuda.cu .*\n.*nosuch"):
        build.compile_cubin(source, "sm_90")
    with pytest.raises(build.BuildError, match=r"(?s)for the CPU:\n.*nosuch"):
        host.compile_library(source)
    assert not list((source.parent.parent / "cache").glob("sample*"))


def test_builds_at_once_do_not_disturb_each_other(source: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: build.compile_cubin(source, "sm_90").code, range(16)))
    assert len(set(found)) == 1
    script = (
        "import sys; from pathlib import Path; from kernels import host;"
        "host.Library(Path(sys.argv[1])).function('nothing', 'P', 32)"
    )
    runs = [subprocess.Popen([sys.executable, "-c", script, str(source)]) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    assert not list((source.parent.parent / "cache").glob(".*"))


def test_a_thing_is_built_once_however_many_want_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path))
    built: list[Path] = []

    def make(target: Path) -> None:
        built.append(target)
        time.sleep(0.05)
        target.write_text("all of it")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.produce("thing", make).path.read_text(), range(8)))
    assert found == ["all of it"] * 8
    assert len(built) == 1


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDWATCH_CACHE", str(tmp_path))

    def fail(target: Path) -> None:
        target.write_text("half of it")
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        cache.produce("thing", fail)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [
        tmp_path / "locks" / "thing"
    ]


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((9, 0), "sm_90"), ((8, 0), "sm_80"), ((8, 6), "sm_86"), ((10, 0), "sm_100")],
)
def test_the_newest_architecture_that_a_device_runs(capability: tuple[int, int], arch: str) -> None:
    assert build.arch_for(capability) == arch


def test_a_device_that_nvrtc_does_not_know_is_refused() -> None:
    with pytest.raises(build.BuildError, match=r"compute capability 3.5: NVRTC 13"):
        build.arch_for((3, 5))


def test_a_missing_compiler_is_told(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(build.BuildError, match="no g"):
        host.compile_library(source)
