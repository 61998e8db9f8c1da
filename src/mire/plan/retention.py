"""What retention removes from one name, and why; which models are orphans.

Owns: the rules of core-layout §6, and what a hold does to them.
Must not know: files, the clock, how anything is removed.
Keeps: the latest version of a name goes only together with all others, and only when its lifetime is over;
a held version never goes; deciding again after a removal removes nothing more; what cannot be read or
told for sure stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from mire.model.artifact import Metadata, ModelRef
from mire.model.hold import NO_HOLDS, Holds
from mire.model.instant import datetime_of
from mire.model.lifetime import duration_of
from mire.model.names import Uuid

Reason = Literal["duration-expired", "workflow-deleted", "job-deleted", "version-count", "version-age"]
RunRecord = Literal["there", "gone", "unknown"]
"""Whether the record of a run exists; unknown when nothing was asked, or nobody can tell."""

RUN_LIFETIMES: Final[Mapping[str, Reason]] = {"workflow": "workflow-deleted", "job": "job-deleted"}
"""Lifetimes that end with the record of the run that wrote the data."""

ENDLESS: Final = frozenset(("infinite", "ephemeral"))
"""Ephemeral data is meant for memory; where it reached the disk, nothing ever ends it, as in the reference."""

ALWAYS_LIVE: Final = frozenset(
    f"swamp/{word}"
    for word in (
        *("enrollment-token", "worker", "step-lease", "pending-dispatch"),
        *("fleet-probe", "server-token", "grant", "group"),
    )
)
"""Types of the reference's own bookkeeping, which have no definitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything known about one name; `versions` are those a reader sees, ascending, the last the latest."""

    versions: tuple[Metadata, ...]
    now: datetime
    holds: Holds = NO_HOLDS
    run: RunRecord = "unknown"
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which numbers go and why; `warning` says what could not be decided."""

    numbers: tuple[int, ...] = ()
    reason: Reason | None = None
    is_whole_name: bool = False
    warning: str | None = None


def plan_retention(facts: Facts) -> Retention:
    """What goes of one name."""
    if facts.damaged:
        return Retention(warning=f"left alone, because a version is damaged: {facts.damaged[0]}")
    if not facts.versions:
        return Retention()
    latest = facts.versions[-1]
    reason = expiry_of(latest, run=facts.run, now=facts.now)
    warning = None if reason else _warning_of(latest, facts.run)
    held = {version.version for version in facts.versions if facts.holds.is_held(version.version)}
    # A name expires whole or not at all: removing all but a held version would show readers that old
    # version as the latest. So one held version keeps the name, and the version policy takes the others.
    if reason is not None and not held:
        numbers = tuple(version.version for version in facts.versions)
        return Retention(numbers=numbers, reason=reason, is_whole_name=True)
    kind, surplus = _surplus_of(facts.versions, facts.now)
    # Held versions are taken out of what would go; they count like any other towards the N that stay. So a
    # hold never decides about a version it does not name: neither pushes one out nor keeps one more.
    numbers = tuple(version.version for version in surplus if version.version not in held)
    return Retention(numbers=numbers, reason=kind if numbers else None, warning=warning)


def expiry_of(latest: Metadata, *, run: RunRecord, now: datetime) -> Reason | None:
    """Why the lifetime of a name is over, judged by its latest version only; None while it lasts."""
    if not _may_expire(latest):
        return None
    if latest.lifetime in RUN_LIFETIMES:
        return RUN_LIFETIMES[latest.lifetime] if run == "gone" and run_of(latest) is not None else None
    duration = duration_of(latest.lifetime)
    return "duration-expired" if duration is not None and _age_of(latest, now) > duration else None


def _may_expire(latest: Metadata) -> bool:
    # A tombstone forwards and a deletion marker tells; both would be lost with the name.
    return latest.is_active and latest.renamed_to is None and latest.lifetime not in ENDLESS


def _warning_of(latest: Metadata, run: RunRecord) -> str | None:
    if not _may_expire(latest) or latest.lifetime not in RUN_LIFETIMES:
        return None
    if run_of(latest) is None:
        return f"lifetime '{latest.lifetime}' never ends: its metadata has no workflowId or no workflowRunId"
    if run == "unknown":
        return f"lifetime '{latest.lifetime}' cannot be judged: there is no directory of workflow runs here"
    return None


def run_of(latest: Metadata) -> tuple[Uuid, Uuid] | None:
    """The workflow and the run whose record decides about the data; None when nothing depends on one."""
    workflow, run = latest.owner.workflow_id, latest.owner.workflow_run_id
    if latest.lifetime not in RUN_LIFETIMES or workflow is None or run is None:
        return None
    return workflow, run


def needs_history(latest: Metadata, count: int, *, run: RunRecord, now: datetime) -> bool:
    """Whether deciding takes the metadata of all versions: most names are settled by their latest."""
    if expiry_of(latest, run=run, now=now) is not None:
        return True
    if isinstance(latest.version_policy, int):
        return count > latest.version_policy
    return count > 1


def _surplus_of(versions: tuple[Metadata, ...], now: datetime) -> tuple[Reason, tuple[Metadata, ...]]:
    """What the version policy of the latest version lets go; the highest is never part of it."""
    policy = versions[-1].version_policy
    if isinstance(policy, int):
        return "version-count", versions[: max(0, len(versions) - policy)]
    age = duration_of(policy) or timedelta.max
    return "version-age", tuple(version for version in versions[:-1] if _age_of(version, now) > age)


def _age_of(version: Metadata, now: datetime) -> timedelta:
    return now - datetime_of(version.created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The ids of all definitions, in lower case; `workflows` is None when nobody can tell."""

    models: frozenset[str]
    workflows: frozenset[str] | None


Standing = Literal["live", "orphan", "unknown"]


def standing_of(model: ModelRef, definitions: Definitions) -> Standing:
    """Whether the definition of a model still exists."""
    if model.model_type in ALWAYS_LIVE:
        return "live"
    known = definitions.workflows if model.model_type == "workflow" else definitions.models
    if known is None:
        return "unknown"
    return "live" if model.model_id.lower() in known else "orphan"
