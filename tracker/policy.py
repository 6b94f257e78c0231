"""What a project calls a change: plain numbers, so that settings load no statistics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """What counts as a change, and how sure one must be.

    `minimal_effect`: smaller changes are never called. `confidence` of the interval; with it comes
    the share of unchanged cases that are called by chance. `suspicion`: p-value below which a case
    that is not called is undecided, to be measured again. `resolution`: a comparison that could
    not have shown a loss this large is undecided, for its "no change" would hide one; why it is
    this large is in .github/decisions/0006. `stale_after_days`: None calls no baseline stale.
    """

    minimal_effect: float = 0.005
    confidence: float = 0.999
    suspicion: float = 0.01
    resolution: float = 0.2
    min_measurements: int = 6
    stale_after_days: float | None = 30.0
    # Unchanged machine code makes a change of speed unlikely: ten times the evidence is asked for.
    same_code_factor: float = 10.0


DEFAULT_POLICY = Policy()
