"""Real measuring processes that start together and measure one after the other."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracker.loop.fresh import Job, MeasureError, PytestMeasure, Task, side_by_side
from tracker.loop.idle import idle_plugins
from tracker.loop.journal import read_journal
from tracker.loop.settings import LoopSettings
from tracker.loop.worktrees import BuildError

TEST = "test_perf.py::test_relu"
CONFTEST = """
import os, time
import pytest

def note(what):
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{what} {os.path.basename(os.environ['BANDWATCH_JOURNAL'])[:1]}\\n")

@pytest.fixture
def gpu_benchmark():
    return None
"""
# Tells when it is collected, and when its test begins and ends.
MODULE = """
import time
from conftest import note

note("collected")

def test_relu(gpu_benchmark):
    import colorsys
    note("begin")
    time.sleep(0.1)
    note("end")
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_perf.py").write_text(MODULE)
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    return folder


def jobs(root: Path, count: int, *, timing: bool = True) -> list[Job]:
    task = Task((TEST,), timing=timing)
    return [Job(root, task, root.parent / f"{number}.jsonl") for number in range(count)]


def notes(root: Path) -> list[str]:
    path = root.parent / "notes"
    return path.read_text().splitlines() if path.exists() else []


def measure(limit_s: float = 60.0) -> PytestMeasure:
    return PytestMeasure(LoopSettings(time_limit_s=limit_s))


def test_all_are_collected_before_the_first_runs_and_one_runs_at_a_time_in_order(
    root: Path,
) -> None:
    with side_by_side(measure(), jobs(root, 4)) as answers:
        for answer in answers:
            answer()
    found = notes(root)
    assert sorted(found[:4]) == [f"collected {n}" for n in range(4)]
    assert found[4:] == [f"{what} {n}" for n in range(4) for what in ("begin", "end")]


def test_nothing_runs_before_its_answer_is_asked_for(root: Path) -> None:
    with side_by_side(measure(), jobs(root, 2)) as answers:
        answers[0]()
        time.sleep(0.3)
    assert "begin 1" not in notes(root)
    assert read_journal(root.parent / "1.jsonl").phases == []


def test_those_without_timing_run_at_once_and_end_before_anything_is_timed(root: Path) -> None:
    check = jobs(root, 1, timing=False)
    timed = [
        job._replace(journal=root.parent / f"{n}.jsonl") for n, job in enumerate(jobs(root, 1), 1)
    ]
    with side_by_side(measure(), [*check, *timed]) as (_, answer):
        answer()
    found = notes(root)
    assert found.index("end 0") < found.index("begin 1")


def test_one_that_cannot_be_collected_is_told_before_any_other_has_run(root: Path) -> None:
    (root / "test_perf.py").write_text(
        "import os\nfrom conftest import note\n"
        "if os.environ['BANDWATCH_JOURNAL'].endswith('2.jsonl'):\n    import no_such_header\n"
        "def test_relu(gpu_benchmark):\n    note('begin')\n"
    )
    with (
        side_by_side(measure(), jobs(root, 4)) as answers,
        pytest.raises(BuildError, match="no_such_header"),
    ):
        answers[0]()
    assert notes(root) == []


def test_one_that_dies_while_all_start_is_told(root: Path) -> None:
    (root / "test_perf.py").write_text(
        "import os\n"
        "if os.environ['BANDWATCH_JOURNAL'].endswith('1.jsonl'):\n    os._exit(9)\n"
        "def test_relu(gpu_benchmark):\n    pass\n"
    )
    with (
        side_by_side(measure(), jobs(root, 2)) as answers,
        pytest.raises(MeasureError, match="died with exit code 9"),
    ):
        answers[0]()


def test_one_that_is_killed_while_it_waits_is_told_at_its_turn(root: Path) -> None:
    step = measure()
    first, second = (step.start(job) for job in jobs(root, 2))
    with first, second:
        assert first.settled()
        assert second.settled()
        assert second.running is not None
        assert second.running._child is not None
        os.kill(second.running._child.pid, signal.SIGKILL)
        first.answer()
        with pytest.raises(MeasureError, match="died with exit code 9"):
            second.answer()


def test_the_time_limit_holds_after_the_turn(root: Path) -> None:
    (root / "test_perf.py").write_text(
        "import time\ndef test_relu(gpu_benchmark):\n    time.sleep(60)\n"
    )
    with (
        side_by_side(measure(4.0), jobs(root, 1)) as (answer,),
        pytest.raises(MeasureError, match="took too long"),
    ):
        answer()


def test_a_resumed_block_starts_only_what_is_not_done(root: Path) -> None:
    with side_by_side(measure(), jobs(root, 4)) as answers:
        for answer in answers[:2]:
            answer()
    (root.parent / "notes").unlink()
    with side_by_side(measure(), jobs(root, 4)) as answers:
        for answer in answers:
            answer()
    assert {line.split()[1] for line in notes(root)} == {"2", "3"}
    finished = [read_journal(job.journal).finished for job in jobs(root, 4)]
    assert finished == [0, 0, 0, 0]


PARENT = """
import sys
from pathlib import Path
from tracker.tests.loop.test_side_by_side import jobs, measure
from tracker.loop.fresh import side_by_side

root = Path(sys.argv[1])
with side_by_side(measure(), jobs(root, 2)) as answers:
    print("started", flush=True)
    sys.stdin.read()
"""


def test_those_that_wait_die_with_who_started_them(root: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(root)]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "started\n"
    _until(lambda: len(notes(root)) == 2)
    parent.kill()
    parent.communicate()
    _until(lambda: not _measuring(root))
    assert all(line.startswith("collected") for line in notes(root))


def _until(condition: object, limit_s: float = 20.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _measuring(root: Path) -> list[str]:
    """Return the processes that measure in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "environ").read_bytes()
        except OSError:
            continue
        if f"BANDWATCH_JOURNAL={root.parent}".encode() in words:
            found.append(process.name)
    return found


def test_what_was_imported_late_is_imported_before_the_turn_the_next_time(root: Path) -> None:
    step = measure()
    (root / "late.py").write_text("")  # the checkout's own modules are not
    (root / "test_perf.py").write_text(
        "import sys\n"
        "from conftest import note\n"
        "def test_relu(gpu_benchmark):\n"
        "    note('early' if 'colorsys' in sys.modules else 'late')\n"
        "    import colorsys\n    import late\n"
    )
    for job in jobs(root, 2):
        with side_by_side(step, [job]) as (answer,):
            answer()
    assert notes(root) == ["late 0", "early 1"]
    assert "colorsys" in step.imports
    assert "late" not in step.imports


def test_a_module_that_cannot_be_imported_any_more_is_left_out(root: Path) -> None:
    step = PytestMeasure(LoopSettings(), {"no_such_module": None, "colorsys": None})
    with side_by_side(step, jobs(root, 1)) as (answer,):
        assert answer().failed == {}


def test_a_process_leaves_without_taking_itself_apart_but_calls_who_asked_for_it(
    root: Path,
) -> None:
    (root / "test_perf.py").write_text(
        "import atexit, time\n"
        "from conftest import note\n"
        "class Slow:\n    def __del__(self):\n        note('taken apart')\n"
        "kept = Slow()\n"
        "atexit.register(note, 'asked')\n"
        "def test_relu(gpu_benchmark):\n    raise AssertionError('wrong')\n"
    )
    with side_by_side(measure(), jobs(root, 1)) as (answer,):
        assert answer().failed == {TEST: "AssertionError: wrong"}
    assert notes(root) == ["asked 0"]
    assert read_journal(root.parent / "0.jsonl").finished == 1


def test_a_thread_that_is_to_be_waited_for_is(root: Path) -> None:
    (root / "test_perf.py").write_text(
        "import threading, time\n"
        "from conftest import note\n"
        "def late():\n    time.sleep(0.5)\n    note('late')\n"
        "def test_relu(gpu_benchmark):\n    threading.Thread(target=late).start()\n"
    )
    with side_by_side(measure(), jobs(root, 1)) as (answer,):
        answer()
    assert notes(root) == ["late 0"]


def test_idle_plugins_are_left_out_unless_something_speaks_of_them(root: Path) -> None:
    def idle(arguments: tuple[str, ...] = (), addopts: str = "") -> list[str]:
        return idle_plugins(root, ["test_perf.py"], arguments, addopts)

    assert idle() == ["anyio", "hypothesispytest", "cacheprovider"]
    assert idle_plugins(root, [], (), "") == []
    assert "cacheprovider" not in idle(("--lf",))
    assert "hypothesispytest" not in idle((), "--hypothesis-seed=1")
    (root / "pyproject.toml").write_text(
        '[project]\ndependencies = ["anyio"]\n[tool.pytest.ini_options]\ncache_dir = "x"\n'
    )
    assert idle() == ["anyio", "hypothesispytest"]
    (root / "test_perf.py").write_text("async def test_relu(): ...\n")
    assert idle() == ["hypothesispytest"]


def test_a_process_runs_without_the_idle_plugins(root: Path) -> None:
    # Put together at run time: written out, they would speak of the plugins.
    names = "('any' + 'io', 'hypo' + 'thesispytest', 'ca' + 'cheprovider')"
    (root / "conftest.py").write_text(
        f"{CONFTEST}\ndef pytest_configure(config):\n"
        f"    note([name for name in {names} if config.pluginmanager.hasplugin(name)])\n"
    )
    with side_by_side(measure(), jobs(root, 1)) as (answer,):
        answer()
    assert notes(root)[0] == "[] 0"
