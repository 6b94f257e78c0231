"""Where the toolkit's parts are looked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels import toolkit


def roots(tmp_path: Path, **headers: str) -> list[Path]:
    for name, header in headers.items():
        folder = tmp_path / name / "include"
        folder.mkdir(parents=True)
        (folder / header).touch()
    return [tmp_path / name for name in headers]


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    toolkit.include_folders.cache_clear()
    yield
    toolkit.include_folders.cache_clear()


def test_headers_of_an_environment_upon_another_are_found_in_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = roots(tmp_path, own="crt.h", system="cuda_fp16.h")
    monkeypatch.setattr(toolkit, "_wheel_folders", lambda: iter(wheels))
    assert toolkit.include_folders() == tuple(root / "include" for root in wheels)


def test_an_installation_serves_where_no_wheel_has_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, installed = roots(tmp_path, wheel="other.h", installed="cuda_fp16.h")
    monkeypatch.setattr(toolkit, "_wheel_folders", lambda: iter([wheel]))
    monkeypatch.setattr(toolkit, "_installations", lambda: iter([installed]))
    assert toolkit.include_folders() == (installed / "include",)


def test_no_headers_at_all_names_the_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "_wheel_folders", lambda: iter(()))
    monkeypatch.setattr(toolkit, "_installations", lambda: iter(()))
    with pytest.raises(FileNotFoundError, match="nvidia-cuda-runtime, nvidia-cuda-crt"):
        toolkit.include_folders()
