"""A pytest plugin for the measuring process: picks the wanted tests, writes a journal as it goes.

It runs inside any commit's checkout, next to whatever version of the tracker that commit has, so
it imports pytest alone and takes its orders from environment variables: the journal's file, and
two files with lists of test ids, those wanted and those done before a crash. Each line of the
journal is one JSON object, on disk before the next test starts: a crash costs one test.

The process ends with the one that started it, however that ends: nobody would read what it goes
on to measure, and the next call measures the same meanwhile.

Where it is given a descriptor too, the process waits there for its turn when everything is imported
and collected, before anything runs: it writes a byte, then sleeps until it reads one. What earlier
processes imported while their tests ran it imports before that, so that nobody waits for it. Nobody
waits for the interpreter to take its modules apart either: the process leaves when all is done.

A worktree's own code is found on the path. The import hooks of editable installs, some of which
come first, would give the code of another checkout for it: they are asked last. What was imported
from another checkout all the same is told after the collection and again at the end.
"""

# ruff: noqa: INP001 - its folder is put on the path; it is in no package.
import atexit
import ctypes
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import GetSetDescriptorType, ModuleType
from typing import Any, TextIO

import pytest

JOURNAL = "BANDWATCH_JOURNAL"
WANTED = "BANDWATCH_WANTED"
DONE = "BANDWATCH_DONE"
TURN = "BANDWATCH_TURN"
IMPORTS = "BANDWATCH_IMPORTS"
PARENT = "BANDWATCH_PARENT"
TREES = "BANDWATCH_TREES"
_UNCALLED = 70
_TOLD = 4_000
_NAMESPACE: GetSetDescriptorType = vars(ModuleType)["__dict__"]
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
# A test that measures asks for one of these; the suite's other tests are not for here.
_MEASURING = frozenset({"gpu_benchmark", "benchmark"})


def _read_trees() -> dict[str, Any]:
    path = os.environ.get(TREES)
    return json.loads(Path(path).read_text("utf-8")) if path else {}


_TREES = _read_trees()
# Now, before any plugin or conftest of theirs is imported.
sys.path += _TREES.get("last", [])
if _TREES.get("side"):
    sys.meta_path.sort(key=lambda finder: "editable" in str(getattr(finder, "__module__", "")))


def pytest_configure(config: pytest.Config) -> None:
    """Start the journal where one is asked for."""
    # Taken away, as the turn is below: what this process starts has another parent.
    if parent := os.environ.pop(PARENT, None):
        _end_with(int(parent))
    if JOURNAL in os.environ:
        # Open as long as the process lives: the last line is written after the last hook of ours.
        file = Path(os.environ[JOURNAL]).open("a", encoding="utf-8")  # noqa: SIM115
        inside = _Inside(file, _names(WANTED), _names(DONE))
        if not hasattr(config, "workerinput"):  # the workers of a parallel session are part of it
            inside.begin()
        config.pluginmanager.register(inside)
        config.add_cleanup(inside.leave)
    # Taken away: workers of a parallel session and what tests start have no turn of their own.
    if file_number := os.environ.pop(TURN, None):
        config.pluginmanager.register(_Turn(int(file_number), _names(IMPORTS)))


def _names(variable: str) -> dict[str, None] | None:
    path = os.environ.get(variable)
    return dict.fromkeys(json.loads(Path(path).read_text("utf-8"))) if path else None


def _end_with(parent: int) -> None:
    """Have the system end this process when its parent ends; end it now where that has happened.

    The parent may be a script between the two, so another one than expected means nothing; the
    first process of all means that nobody is left.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1 != parent:
        os._exit(_UNCALLED)


class _Inside:
    def __init__(
        self, file: TextIO, wanted: dict[str, None] | None, done: dict[str, None] | None
    ) -> None:
        self._file = file
        self._wanted = wanted
        self._done = done or {}
        self._session: pytest.Session | None = None

    def begin(self) -> None:
        """Tell that a process began."""
        self._write(kind="began")

    def _write(self, **line: Any) -> None:
        try:
            text = json.dumps(line, allow_nan=False)
        except (TypeError, ValueError) as error:
            # What a test attached is no strict JSON: the rest of the line still counts.
            line |= {"user_properties": [], "text": f"its record cannot be written: {error}"}
            text = json.dumps(line, allow_nan=False)
        self._file.write(text + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what is not wanted, and tell which wanted tests this commit lacks."""
        absent = sorted((self._wanted or {}).keys() - {item.nodeid for item in items})
        chosen = [item for item in items if self._chosen(item)]
        left_out = [item for item in items if not self._chosen(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen
        self._write(kind="collected", chosen=len(chosen), absent=absent)

    def _chosen(self, item: pytest.Item) -> bool:
        if self._wanted is not None and item.nodeid not in self._wanted:
            return False
        measures = not _MEASURING.isdisjoint(getattr(item, "fixturenames", ()))
        return measures and item.nodeid not in self._done

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell of a file that cannot be collected."""
        if report.failed:
            self._write(kind="uncollected", name=report.nodeid, text=_end(report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how one phase of one test ended, with what the test attached."""
        line: dict[str, Any] = {
            "kind": "phase",
            "nodeid": report.nodeid,
            "when": report.when,
            "outcome": report.outcome,
            # They pile up from phase to phase: the last one has them all.
            "user_properties": [list(pair) for pair in report.user_properties]
            if report.when == "teardown"
            else [],
        }
        if hasattr(report, "wasxfail"):
            line["wasxfail"] = str(report.wasxfail)
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            line["text"] = _first(crash.message) if crash else _end(report.longreprtext)
        self._write(**line)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell why the session was ended from within."""
        self._write(
            kind="stopped",
            text=_first(str(excinfo.value)) or excinfo.typename,
            code=getattr(excinfo.value, "returncode", None),
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Tell what was imported only when the tests ran: the next process does so in good time."""
        before = set(sys.modules)
        self._tell_origins()
        found = yield
        self._tell_origins()
        late = [name for name in list(sys.modules) if name not in before]
        outside = [name for name in late if _installed(name, session.config.rootpath)]
        self._write(kind="imported", names=outside)
        return found

    def _tell_origins(self) -> None:
        """Tell which modules are of another checkout, or of a copy that was installed of one."""
        if found := _elsewhere(_TREES):
            self._write(kind="origins", files=found, path=sys.path)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Tell that the session came to its end."""
        self._session = session
        self._write(kind="finished", exit=int(exitstatus))

    def leave(self) -> None:
        """End the process once its session has: what is left would take a second with torch loaded.

        Who asked to be called at the end is; threads that are to be waited for keep it alive.
        """
        others = [t for t in threading.enumerate() if not t.daemon]
        if self._session is None or others != [threading.main_thread()]:
            return
        if self._session.exitstatus == pytest.ExitCode.USAGE_ERROR:
            return  # pytest says only after this what was wrong
        atexit._run_exitfuncs()  # noqa: SLF001 - what the interpreter itself calls
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(self._session.exitstatus))


class _Turn:
    def __init__(self, file: int, imports: dict[str, None] | None) -> None:
        self._file = file
        self._imports = imports or {}
        # What a test starts must not keep it open: its end tells that this process ended.
        os.set_inheritable(file, False)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Wait for the turn; die where nobody gives it."""
        if session.testsfailed:
            return  # a file could not be collected: that is to be told now
        _import_all(self._imports)
        try:
            os.write(self._file, b"\n")
            called = os.read(self._file, 1)
        except OSError:
            called = b""
        if not called:
            os._exit(_UNCALLED)


def _import_all(names: dict[str, None]) -> None:
    """Import modules in the order in which they were; leave out what cannot be imported here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            with suppress(Exception):
                import_module(name)


def _installed(name: str, root: Path) -> bool:
    """Whether a module is none of the checkout's own and can be imported by its name."""
    spec = _facts(sys.modules.get(name)).get("__spec__")
    origin = getattr(spec, "origin", None)
    if getattr(spec, "name", None) != name or not origin:
        return False
    return origin in {"built-in", "frozen"} or not Path(origin).is_relative_to(root)


def _facts(module: object) -> dict[str, Any]:
    """Return a module's namespace, without loading one that waits to be asked for more.

    Some stand for a module and answer any question; some load all that they have as soon as one
    looks at them: so their class is not asked.
    """
    return _NAMESPACE.__get__(module) if issubclass(type(module), ModuleType) else {}


def _elsewhere(trees: dict[str, Any]) -> dict[str, str]:
    """Return the files of modules that lie in another worktree, or are copies, by their names."""
    if not trees:
        return {}
    copies = set(trees["copies"])
    roots = [f"{tree}{os.sep}" for tree in (trees["own"], *trees["others"])]
    folders: dict[str, str] = {}
    found = {}
    for name, module in list(sys.modules.items()):
        file = _facts(module).get("__file__")
        if not isinstance(file, str) or "\0" in file or not Path(file).is_absolute():
            continue
        folder, last = os.path.split(file)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        path = f"{folders[folder]}{os.sep}{last}"
        tree = max((root for root in roots if path.startswith(root)), key=len, default=roots[0])
        installed = "/site-packages/" in path or "/dist-packages/" in path
        if path in copies or (tree != roots[0] and not installed):
            found[name] = path
    return found


def _first(text: str) -> str:
    return text.strip().partition("\n")[0][:500]


def _end(text: str) -> str:
    """Return the end of what pytest says; who reads the journal picks the line that tells."""
    return text[-_TOLD:]
