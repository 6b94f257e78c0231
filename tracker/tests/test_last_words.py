"""Which line of a failed process's output is told, for each sort of failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from tracker.last_words import LIMIT, NOTHING, read_log, telling_line

# What tools print, shortened in the middle; the expected line beside it.
OUTPUTS = {
    "gcc": (
        (
            "g++ -O2 -c relu.cpp\nrelu.cpp: In function 'void relu()':\n"
            "relu.cpp:7:5: error: 'x' was not declared in this scope\n    7 |     x = 1;\n      |     ^\n"
            "make: *** [Makefile:3: relu.o] Error 1\n"
        ),
        "relu.cpp:7:5: error: 'x' was not declared in this scope",
    ),
    "a header": (
        (
            "relu.cpp:1:10: fatal error: nothing.h: No such file or directory\n"
            "    1 | #include <nothing.h>\n      |          ^~~~~~~~~~~\ncompilation terminated.\n"
            "make[1]: *** [Makefile:3: relu.o] Error 1\nmake: Leaving directory '/x'\n"
        ),
        "relu.cpp:1:10: fatal error: nothing.h: No such file or directory",
    ),
    "nvcc": (
        (
            'relu.cu(3): error: identifier "y" is undefined\n      y = 1;\n      ^\n\n'
            '1 error detected in the compilation of "relu.cu".\n'
        ),
        'relu.cu(3): error: identifier "y" is undefined',
    ),
    "the linker": (
        (
            "/usr/bin/ld: main.o: in function `main':\nmain.c:(.text+0x5): undefined reference to `f'\n"
            "collect2: error: ld returned 1 exit status\n"
        ),
        "main.c:(.text+0x5): undefined reference to `f'",
    ),
    "cmake": (
        (
            "-- The CXX compiler identification is GNU\n"
            "CMake Error at CMakeLists.txt:4 (find_package):\n  Could not find CUDAToolkit\n\n"
            "-- Configuring incomplete, errors occurred!\n"
        ),
        "CMake Error at CMakeLists.txt:4 (find_package): Could not find CUDAToolkit",
    ),
    "ninja": (
        (
            "[1/2] Building\nFAILED: relu.o\nc++ -c relu.cpp\nrelu.cpp:1:1: error: unknown type name 'z'\n"
            "ninja: build stopped: subcommand failed.\n"
        ),
        "relu.cpp:1:1: error: unknown type name 'z'",
    ),
    "a command that make lacks": (
        "make: nvcc: No such file or directory\nmake: *** [Makefile:2: all] Error 127\n",
        "make: nvcc: No such file or directory",
    ),
    "pip": (
        (
            "ERROR: Could not find a version that satisfies the requirement nothing\n"
            "ERROR: No matching distribution found for nothing\n\n"
            "[notice] A new release of pip is available: 24.0 -> 25.1\n"
        ),
        "Could not find a version that satisfies the requirement nothing",
    ),
    "pip's build": (
        (
            "  error: subprocess-exited-with-error\n\n  x Getting requirements did not run\n"
            "  | exit code: 1\n      Traceback (most recent call last):\n"
            '        File "setup.py", line 1, in <module>\n          import torch\n'
            "      ModuleNotFoundError: No module named 'torch'\n      [end of output]\n"
        ),
        "ModuleNotFoundError: No module named 'torch'",
    ),
    "a chain of exceptions": (
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1\n\n'
            "During handling of the above exception, another exception occurred:\n\n"
            'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n'
            "RuntimeError: the second\nwith another line\n"
        ),
        "RuntimeError: the second",
    ),
    "a compiler in an exception": (
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
            'RuntimeError: cannot compile:\nrelu.cu(3): error: identifier "y" is undefined\n'
        ),
        'relu.cu(3): error: identifier "y" is undefined',
    ),
    "a signal": (
        (
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
            '  File "a.py", line 1 in f\n'
        ),
        "Fatal Python error: Segmentation fault",
    ),
    "an uncaught exception of C++": (
        (
            "terminate called after throwing an instance of 'std::runtime_error'\n"
            "  what():  out of device memory\nAborted (core dumped)\n"
        ),
        "out of device memory",
    ),
    "git": (
        "hint: see the manual\nwarning: something else\nfatal: not a valid object name: 'x'\n",
        "not a valid object name: 'x'",
    ),
    "a shell": ("sh: 1: nvcc: not found\n", "sh: 1: nvcc: not found"),
    "only frames": ("make: *** [Makefile:2: all] Error 1\n", "make: *** [Makefile:2: all] Error 1"),
    "nothing": ("\n \n", NOTHING),
    "colours": ("\x1b[31mERROR: no such thing\x1b[0m\n", "no such thing"),
    "a password": (
        "sqlalchemy.exc.OperationalError: postgresql://ada:s3cret@db.example/x refused\n",
        "sqlalchemy.exc.OperationalError: postgresql://ada:***@db.example/x refused",
    ),
    "a command for the runner": ("\x1b[2K::set-output name=x::y", r"\x3a:set-output name=x::y"),
}


@pytest.mark.parametrize("sort", OUTPUTS)
def test_the_line_that_says_why_is_told(sort: str) -> None:
    output, expected = OUTPUTS[sort]
    assert telling_line(output) == expected


# A broken project, what pytest is called with beside it, and what is to be told. They are real:
# another version of pytest that words it otherwise is to be noticed.
BROKEN = {
    "no such option": ({}, ("--bandwatch-nothing=1",), "unrecognized arguments: --bandwatch-noth"),
    "no such plugin": ({}, ("-p", "nothing_here"), 'Error importing plugin "nothing_here"'),
    "a wrong expression": ({}, ("-k", "a and"), "Wrong expression passed to '-k': a and"),
    "no such folder": ({}, ("nothing_here",), "file or directory not found: nothing_here"),
    "an import in a conftest": (
        {"conftest.py": "import nothing_here\n"},
        (),
        "ModuleNotFoundError: No module named 'nothing_here' (in ",
    ),
    "a conftest that is no Python": ({"conftest.py": "def x(:\n"}, (), "SyntaxError: invalid synt"),
    "an exception of two lines": (
        {"conftest.py": "raise RuntimeError('one\\ntwo')\n"},
        (),
        "RuntimeError: one (in ",
    ),
    "addopts": (
        {"pytest.ini": "[pytest]\naddopts = --nothing\n"},
        (),
        "unrecognized arguments: --",
    ),
    "a newer pytest": ({"pytest.ini": "[pytest]\nminversion = 99\n"}, (), "'minversion' requires"),
    "a plugin that is required": (
        {"pytest.ini": "[pytest]\nrequired_plugins = nothing-here\n"},
        (),
        "Missing required plugins: nothing-here",
    ),
    "settings that are no TOML": ({"pyproject.toml": "[tool.pytest\n"}, (), "Expected ']' at the"),
    "a hook that fails": (
        {"conftest.py": "def pytest_collection_modifyitems():\n    raise ValueError('broken')\n"},
        (),
        "ValueError: broken",
    ),
    "an unknown hook": (
        {"conftest.py": "def pytest_nothing(x):\n    pass\n"},
        (),
        "unknown hook 'pytest_nothing'",
    ),
    "a wrong use": (
        {"conftest.py": "import pytest\nraise pytest.UsageError('set X')\n"},
        (),
        "set X",
    ),
}


@pytest.mark.parametrize("sort", BROKEN)
def test_what_keeps_pytest_from_starting_is_told(sort: str, tmp_path: Path) -> None:
    files, arguments, expected = BROKEN[sort]
    for name, text in {"test_a.py": "def test_a():\n    pass\n", **files}.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--color=yes", "-p", "no:cacheprovider", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode, done.stdout
    assert expected in telling_line(done.stdout + done.stderr)


def test_a_module_without_pytest_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "no_pytest_here"], capture_output=True, text=True, check=False
    )
    assert telling_line(done.stderr).endswith("No module named no_pytest_here")


def test_what_is_told_is_bounded_and_one_harmless_line() -> None:
    hostile = "error: " + "\u202e::error::\x07" + "x" * 100_000
    told = telling_line(hostile * 3)
    assert len(told) <= LIMIT
    assert told.isprintable()
    assert "\u202e" not in told


def test_a_log_of_any_size_is_read_quickly(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("(" * 3_000_000 + "\n" + ":1" * 1_000_000 + "\nerror: at the end\n")
    assert read_log(log)[0] == "at the end"


def test_a_log_says_where_it_is_by_its_place_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.log").write_text("error: broken")
    assert read_log(tmp_path / "x.log") == ("broken", "all that it printed is in x.log")
    assert read_log(tmp_path / "none.log")[0] == NOTHING
