"""The doctor's nouns: what was tried on a store, and what the doctor says about it.

Owns: trials and the evidence they make, checks and the report they make.
Must not know: how a trial is made, what it proves.
Keeps: a report is healthy only when no check failed.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mire.errors import DeniedError, MireError, RemoteError

Verdict = Literal["supported", "if-match-unquoted", "if-match-unsupported", "ignored", "write-denied", "inconclusive"]
"""The words of the reference's verifier."""

Result = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried: it happened, it was refused, nobody knows, or it failed with an error."""

    outcome: Literal["yes", "no", "unknown", "failed", "untried"] = "untried"
    error: MireError | None = None

    @property
    def is_denied(self) -> bool:
        """Whether rights were missing."""
        return isinstance(self.error, DeniedError)


UNTRIED: Final = Trial()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that was tried on a remote; yes is what a good store answers, except where it must refuse."""

    contact: Trial = UNTRIED
    marker: Trial = UNTRIED
    create: Trial = UNTRIED
    read_back: Trial = UNTRIED
    create_again: Trial = UNTRIED
    """Must be refused."""
    replace_wrong: Trial = UNTRIED
    """Must be refused."""
    unharmed: Trial = UNTRIED
    replace_right: Trial = UNTRIED
    unquoted_right: Trial = UNTRIED
    unquoted_wrong: Trial = UNTRIED
    """Must be refused."""
    read_new: Trial = UNTRIED
    unchanged: Trial = UNTRIED
    delete_wrong: Trial = UNTRIED
    """Must be refused."""
    delete_right: Trial = UNTRIED
    gone: Trial = UNTRIED
    listed: Trial = UNTRIED
    listed_after: Trial = UNTRIED
    paged: Trial = UNTRIED
    clock: Trial = UNTRIED
    clock_ms: float = 0.0
    """How far the store's clock is ahead of ours."""
    latency_ms: float = 0.0
    """The median of all requests."""
    requests: int = 0
    left_behind: tuple[str, ...] = ()
    """Probes that could not be removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report."""

    name: str
    result: Result
    meaning: str
    is_trust: bool = False
    """Whether a user may decide to live with its failure."""
    error: MireError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the doctor says."""

    datastore_type: str
    name: str
    checks: tuple[Check, ...]
    latency_ms: float
    details: dict[str, Any] = field(default_factory=dict)
    remedy: dict[str, Any] = field(default_factory=dict)
    """Members of the configuration that would heal what failed."""

    @property
    def is_healthy(self) -> bool:
        """Whether the store may be used."""
        return all(check.result != "fail" for check in self.checks)

    @property
    def first_failure(self) -> Check | None:
        """The failure everything else may come from."""
        return next((check for check in self.checks if check.result == "fail"), None)

    @property
    def message(self) -> str:
        """The answer in one line."""
        failure = self.first_failure
        if failure is not None:
            return failure.error.message if failure.error is not None else failure.meaning
        if any(check.is_trust and check.result == "warn" for check in self.checks):
            return "usable by one writer at a time: it cannot be trusted, and you allowed that"
        unproved = ", ".join(check.name for check in self.checks if check.result == "skip")
        return f"safe to share; not proved: {unproved}" if unproved else "safe to share"

    @property
    def error(self) -> MireError | None:
        """The failure as an error, for those who cannot go on."""
        failure = self.first_failure
        if failure is None:
            return None
        if failure.error is not None:
            return failure.error
        message = f"{self.name}: {failure.meaning}"
        return RemoteError(message, kind="untrusted") if failure.is_trust else RemoteError(message, kind="unhealthy")
