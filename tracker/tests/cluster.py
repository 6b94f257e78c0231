"""A throw-away PostgreSQL server on a free loopback port, for as long as the tests run."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

OLDEST = 15
_ROOT = Path("/usr/lib/postgresql")
_START_TIMEOUT_S = 30
# The server ends when this script's input does, so that no killed test run leaves one behind.
_SUPERVISOR = '"$@" & server=$!; read -r _; kill -INT $server; wait $server'
# Speed for data that nobody keeps; processes that are killed lose nothing by it.
_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")


class MissingError(Exception):
    """PostgreSQL cannot be started here; the message says why."""


def binaries() -> Path:
    """Return the folder of the newest server's binaries."""
    found = [(int(p.parent.parent.name), p.parent) for p in _ROOT.glob("[0-9]*/bin/postgres")]
    if not found:
        raise MissingError(f"no PostgreSQL server under {_ROOT}; install Debian's postgresql")
    version, folder = max(found)
    if version < OLDEST:
        raise MissingError(f"PostgreSQL {version} is too old, need {OLDEST} or newer")
    return folder


def _unprivileged() -> list[str]:
    """Return the command's beginning that runs it as a user that the server accepts."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            return ["runuser", "-u", name, "--"]
    raise MissingError("PostgreSQL refuses to run as root, and there is no other user here")


class Cluster:
    """A server with one superuser `owner`, whose password is random.

    `durable` keeps what a commit promised, as a real server does; `settings` are added.
    """

    def __init__(self, *, durable: bool = False, settings: tuple[str, ...] = ()) -> None:
        self._settings = (*(() if durable else _FAST), *settings)
        self.bin = binaries()
        self.user = _unprivileged()
        self.password = secrets.token_hex(12)
        self.folder = Path(tempfile.mkdtemp(prefix="bandwatch-pg-", dir="/tmp"))
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        if self.user:
            shutil.chown(self.folder, self.user[2])
        secret = self.folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        self._run(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "owner",
            "--auth=scram-sha-256",
            f"--pwfile={secret}",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self.user, str(self.bin / program), *arguments],
            capture_output=True,
            check=False,
            cwd="/",
        )
        if done.returncode:
            raise MissingError(f"{program} failed: {done.stderr.decode().strip()}")

    def start(self) -> None:
        """Start the server, on the port it had before."""
        if not self.port:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
        settings = (
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            f"unix_socket_directories={self.folder}",
            "max_connections=64",
            *self._settings,
        )
        flags = [part for setting in settings for part in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self.user,
                    "/bin/sh",
                    "-c",
                    _SUPERVISOR,
                    "sh",
                    str(self.bin / "postgres"),
                    "-D",
                    str(self.data),
                    *flags,
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._accepts():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise MissingError(
                    f"the server did not start: {(self.folder / 'log').read_text()[-500:]}"
                )
            time.sleep(0.02)

    def _accepts(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def cpu_seconds(self) -> float:
        """Return the processor time of the server and all its processes, ended ones too."""
        if self._process is None:
            return 0.0
        family, total = {self._process.pid}, 0
        for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda p: int(p.name)):
            with contextlib.suppress(OSError, ValueError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) in family or int(folder.name) in family:
                    family.add(int(folder.name))
                    # utime, stime, and those of children that were waited for.
                    total += sum(map(int, fields[11:15]))
        return total / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Stop the server as an administrator does: open connections are cut."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(_START_TIMEOUT_S)
            self._process = None

    def kill(self) -> None:
        """End the server as a power cut does: nothing is written any more, it recovers at start."""
        first = (self.data / "postmaster.pid").read_text().split("\n", 1)[0]
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for process in (first, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        if self._process is not None:
            self._process.kill()
            self._process.wait(_START_TIMEOUT_S)
            self._process = None

    def close(self) -> None:
        """Stop the server and remove all its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def dsn(self, database: str) -> str:
        return (
            f"host=127.0.0.1 port={self.port} user=owner password={self.password} dbname={database}"
        )

    def url(self, database: str, user: str = "owner", password: str | None = None) -> str:
        """Return the address of a store in a database."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements as the superuser, each in a transaction of its own."""
        import psycopg

        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A server for tests; skips where the client or the server's programs are missing."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'psycopg[binary]>=3.2'")
    try:
        server = Cluster()
    except MissingError as error:
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.close()
