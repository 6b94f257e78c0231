"""A stand-in for GitHub's comment API on the loopback interface."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LIMIT = 65_536
_PLACE = re.compile(r"/repos/acme/kernels/issues/(?:(\d+)/comments|comments/(\d+))")


@dataclass
class Api:
    """The comments by pull request; too long a body is refused as GitHub does.

    With `refuses` every call is answered with that status.
    """

    address: str = ""
    comments: list[dict[str, object]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    refuses: int | None = None

    def of(self, number: int) -> list[str]:
        return [str(c["body"]) for c in self.comments if c["number"] == number]


@contextmanager
def serving() -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = self._place()[0]
            self._answer(200, [c for c in api.comments if c["number"] == number])

        def do_POST(self) -> None:
            self._write(None)

        def do_PATCH(self) -> None:
            self._write(self._place()[1])

        def _write(self, known: int | None) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
            if len(body) > LIMIT:
                self._answer(422, {"message": "Body is too long"})
                return
            if known is None:
                comment = {"id": len(api.comments) + 1, "number": self._place()[0], "body": body}
                api.comments.append(comment)
            else:
                comment = next(c for c in api.comments if c["id"] == known)
                comment["body"] = body
            self._answer(201, comment)

        def _place(self) -> tuple[int | None, int | None]:
            api.calls.append(f"{self.command} {self.path}")
            match = _PLACE.fullmatch(self.path)
            assert match is not None, self.path
            return tuple(int(part) if part else None for part in match.groups())  # type: ignore[return-value]

        def _answer(self, code: int, data: object) -> None:
            body = json.dumps(data).encode()
            self.send_response(api.refuses or code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
