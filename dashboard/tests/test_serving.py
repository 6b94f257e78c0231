"""How the server listens, what it refuses, and which paths pictures are made of."""

import socket
from contextlib import ExitStack

import pytest

from dashboard.__main__ import listen, main
from dashboard.pictures import known
from dashboard.serving import free_port


def test_small_answers_are_sent_at_once() -> None:
    """A socket that asyncio takes for TCP: what it accepts does not wait for acknowledgements."""
    port = free_port()
    with ExitStack() as stack:
        found = [stack.enter_context(one) for one in listen("127.0.0.1", port)]
        assert [one.getsockname() for one in found] == [("127.0.0.1", port)]
        stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        accepted, _ = found[0].accept()
        stack.enter_context(accepted)
        assert accepted.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    (taken,) = listen("127.0.0.1", port)
    with taken:
        assert main(["--address", "127.0.0.1", "--port", str(port)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"cannot serve at 127.0.0.1:{port}" in told
    assert "choose another --port" in told


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none_is_wrong_use(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--port", port])
    assert ended.value.code == 2
    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "found"),
    [("", ""), ("/", ""), ("/runs", "runs"), ("runs?gpu=x", "runs?gpu=x"), ("/?gpu=x", "?gpu=x")],
)
def test_a_picture_is_of_a_page_with_or_without_a_slash(path: str, found: str) -> None:
    assert known(path) == found


def test_a_path_that_is_no_page_is_told_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"no page is at '/run'; the pages are at .*'runs'"):
        known("/run")
