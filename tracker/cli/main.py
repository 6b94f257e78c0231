"""The command `bandwatch`: finds its commands, turns a failure into one line and an exit code."""

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

import click

import tracker.cli
from tracker.config import redact
from tracker.errors import ExitCode, TrackerError
from tracker.report.escape import plain

INTERRUPTED = 130
# In the order of a user's first day; every other module of this package with a command follows.
# Loaded only when asked for, so that `bandwatch --version` needs no database and no pandas.
_FIRST: Mapping[str, str] = MappingProxyType(
    {
        "record": "record",
        "check": "check",
        "compare": "compare",
        "history": "history",
        "list": "list_",
        "doctor": "doctor",
        "demo": "demo",
        "dashboard": "dashboard",
    }
)
_NO_COMMANDS = frozenset({"main", "options"})


class LazyGroup(click.Group):
    """A group whose commands are the modules of this package: `list_` is `list`, `a_b` is `a-b`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, the common ones first."""
        del ctx
        return [name for name, module in _modules().items() if _command_of(module) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None."""
        del ctx
        module = _modules().get(cmd_name)
        return None if module is None else _command_of(module)


def _modules() -> dict[str, str]:
    names = sorted(module.name for module in iter_modules(tracker.cli.__path__))
    others = {name.rstrip("_").replace("_", "-"): name for name in names if name[0] != "_"}
    return {**_FIRST, **{k: v for k, v in others.items() if v not in _NO_COMMANDS}}


def _command_of(module: str) -> click.Command | None:
    found = getattr(import_module(f"{tracker.cli.__name__}.{module}"), "command", None)
    return found if isinstance(found, click.Command) else None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 no regression, 1 regression, 2 wrong use, 3 undecided or nothing "
    "measured, 4 environment unfit, 5 internal error.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="bandwatch", message="%(prog)s %(version)s")
def cli(*, debug: bool) -> None:
    """Record GPU benchmark results, judge them against their baseline, show them.

    Example: bandwatch doctor
    """
    del debug  # read from the arguments by `main`, which also holds when a command is not found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, return its exit code; results go to stdout, errors to stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given[:1]
    try:
        code = cli.main(given, prog_name="bandwatch", standalone_mode=False)
    except TrackerError as error:
        return _fail(str(error), error.exit_code, debug=debug)
    except click.UsageError as error:
        return _fail(_usage(error), ExitCode.USAGE, debug=debug)
    except click.ClickException as error:
        return _fail(error.format_message(), ExitCode.USAGE, debug=debug)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED, debug=debug)
    except Exception as error:  # noqa: BLE001 - the last door: nothing may leave as a traceback
        shown = " ".join(["bandwatch --debug", *(a for a in given if a != "--debug")])
        message = f"internal error: {type(error).__name__}: {error}; to see where: {shown}"
        return _fail(message, ExitCode.INTERNAL, debug=debug)
    return int(code) if isinstance(code, int) else int(ExitCode.OK)


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else "bandwatch"
    return f"{error.format_message().rstrip('.')}; see {path} --help"


def _fail(message: str, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    try:
        sys.stderr.write(f"bandwatch: {plain(redact(message))}\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
