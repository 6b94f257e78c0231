"""`bandwatch doctor`: what can be measured here, what is missing, and how to get it."""

import click

from tracker.cli.options import report_command
from tracker.config import Config
from tracker.doctor.examine import examine
from tracker.report.document import Document
from tracker.report.formats import Format


@click.command("doctor", short_help="Say what can be measured here and what is missing.")
@report_command
def command(*, form: Format, config: Config) -> Document:
    """Say what device, driver, packages, store and git state are seen, and what is missing.

    Each thing that is missing comes with the command that gets it. The exit code is 4 when nothing
    can be measured.

    Example: bandwatch doctor
    """
    del form
    return examine(config)
