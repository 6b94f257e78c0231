"""A webhook that takes a message and then says nothing of use, or nothing at all."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tracker.loop.notify import UncertainError
from tracker.loop.webhook import NotSentError, post

SECRET = "s3cr3t-token"


@contextmanager
def listening(answer: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """Give the address of a server and what it got; with None it keeps every connection open."""
    got: list[bytes] = []
    links: list[socket.socket] = []

    def take() -> None:
        while True:
            try:
                link, _ = server.accept()
            except OSError:
                return
            links.append(link)
            got.append(link.recv(1 << 16))
            if answer is not None:
                link.sendall(answer)
                link.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=take, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}", got
        server.shutdown(socket.SHUT_RDWR)
    for link in links:
        link.close()


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", None])
def test_what_was_sent_and_not_answered_may_have_arrived(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None
) -> None:
    monkeypatch.setattr("tracker.loop.webhook._TIME_LIMIT_S", 0.5)
    with listening(answer) as (address, got):
        with pytest.raises(UncertainError, match="the webhook gave no answer") as caught:
            post(address, {"text": "news"})
        assert SECRET not in str(caught.value)
        assert len(got) == 1


def test_what_nobody_took_did_not_arrive() -> None:
    with listening(b"") as (address, _):
        pass
    with pytest.raises(NotSentError, match="cannot reach the webhook") as caught:
        post(address, {"text": "news"})
    assert SECRET not in str(caught.value)
