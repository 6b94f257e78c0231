"""What stands above a table: which run, which commit, which device, in which state."""

from tracker.model import Checkout, Environment
from tracker.queries import RunInfo
from tracker.report.document import Value
from tracker.report.verdicts import Heading
from tracker.units import counted


def run_heading(title: str, run: RunInfo, notes: tuple[str, ...] = ()) -> Heading:
    """Return the heading of one run's verdicts; a planted slow-down is named in the first line."""
    lines = (
        *planted_lines(run.notes),
        f"run {run.run_id}, {run.started_at}, {counted(run.results, 'result')}"
        + ("" if run.complete else ", a part of the suite"),
        f"commit {checkout_words(run.checkout)}",
        f"on {environment_words(run.environment)}",
    )
    others = tuple(note for note in run.notes if note not in planted_notes(run.notes))
    return Heading(title, lines, run_facts(run), (*others, *notes))


def comparison_heading(
    base: RunInfo, head: RunInfo, notes: tuple[str, ...] = (), *lines: str
) -> Heading:
    """Return the heading of head against base, `lines` of what is compared last."""
    told = (
        *planted_lines(head.notes),
        f"head: run {head.run_id}, commit {checkout_words(head.checkout)}",
        f"base: run {base.run_id}, commit {checkout_words(base.checkout)}",
        f"on {environment_words(head.environment)}",
        *lines,
    )
    facts = run_facts(head) | {f"base_{key}": value for key, value in run_facts(base).items()}
    return Heading("Comparison", told, facts, notes)


def run_facts(run: RunInfo) -> dict[str, Value]:
    """Return what identifies a run, for machines."""
    return {
        "run": run.run_id,
        "started_at": run.started_at,
        "commit": run.sha,
        "branch": run.checkout.branch,
        "dirty": run.checkout.dirty,
        "complete": run.complete,
        "demo": run.demo,
        "gpu_model": run.gpu_model,
        "device": run.device.uuid,
        "environment": run.environment_key,
    }


def checkout_words(checkout: Checkout) -> str:
    """Return the commit, its branch and subject, and the state of the tree."""
    commit = checkout.commit
    if commit is None:
        return "none: " + ("; ".join(checkout.notes) or "outside a checkout")
    branch = f" ({checkout.branch})" if checkout.branch else ""
    subject = f" {commit.subject}" if commit.subject else ""
    dirty = ", with uncommitted changes" if checkout.dirty else ""
    return f"{commit.sha[:12]}{branch}{subject}{dirty}"


def environment_words(environment: Environment) -> str:
    """Return the device's model, driver and CUDA, and the main library."""
    driver = f", driver {environment.driver}" if environment.driver else ""
    cuda = f", CUDA {environment.cuda}" if environment.cuda else ""
    torch = environment.libraries.get("torch")
    return f"{environment.gpu_model}{driver}{cuda}" + (f", torch {torch}" if torch else "")


def planted_notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the notes that say that a slow-down was planted on purpose."""
    return tuple(note for note in notes if "planted" in note.lower())


def planted_lines(notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first line of a report on a run with a planted slow-down."""
    return tuple(f"on purpose: {note}" for note in planted_notes(notes))
