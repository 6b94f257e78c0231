"""What git says of this checkout, and so under which commit a run would be kept."""

from tracker.doctor.finding import Finding, Level
from tracker.model import Checkout

AREA = "git"


def check_git(checkout: Checkout) -> tuple[Finding, ...]:
    """Return findings on the commit, the tree and what git could not tell."""
    commit = checkout.commit
    if commit is None:
        found = "; ".join(checkout.notes) or "no commit"
        fix = "results are kept without a commit and have no history: work in a git checkout"
        return (Finding(AREA, "commit", Level.WARN, found, fix),)
    branch = checkout.branch or "no branch"
    findings = [Finding(AREA, "commit", Level.OK, f"{commit.sha[:12]} on {branch}")]
    if checkout.dirty:
        found = "uncommitted changes: a run of them is never a baseline"
        findings.append(Finding(AREA, "tree", Level.WARN, found, "commit them"))
    else:
        findings.append(Finding(AREA, "tree", Level.OK, "clean"))
    if checkout.shallow:
        found = "shallow clone: ancestors are missing, so a baseline may not be found"
        findings.append(Finding(AREA, "history", Level.WARN, found, "git fetch --unshallow"))
    findings += [Finding(AREA, "note", Level.INFO, note) for note in checkout.notes]
    return tuple(findings)
