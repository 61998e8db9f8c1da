"""What goes of one name, and why: the rules as tables, the promises as properties."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.model.artifact import Metadata, ModelRef, Owner
from mire.model.hold import NO_HOLDS, Holds, NameHold
from mire.model.instant import Instant, instant_of
from mire.model.lifetime import Lifetime, VersionPolicy
from mire.model.names import DataName, ModelId, ModelType, Uuid, Version
from mire.plan.retention import (
    ALWAYS_LIVE,
    Definitions,
    Facts,
    Retention,
    RunRecord,
    needs_history,
    plan_retention,
    standing_of,
)

NOW = datetime(2026, 5, 17, 8, 30, tzinfo=UTC)
ONE = Uuid("9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21")
TWO = Uuid("c4e1a7b9-0f52-4d6d-b0c3-71f8e2a95d34")
RUN = {"workflow_id": ONE, "workflow_run_id": TWO}


def version(
    number: int,
    *,
    age: timedelta = timedelta(0),
    lifetime: str = "infinite",
    policy: VersionPolicy = 10,
    run: dict[str, Any] | None = None,
    **more: Any,
) -> Metadata:
    """The metadata of a version written `age` before now."""
    return Metadata(
        id=ONE,
        name=DataName("state"),
        version=Version(number),
        content_type="text/plain",
        lifetime=Lifetime(lifetime),
        version_policy=policy,
        streaming=False,
        tags={"type": "resource"},
        owner=Owner(owner_type="manual", owner_ref="x", **(run or {})),
        created_at=instant_of(NOW - age),
        **more,
    )


def held(*versions: int | None) -> Holds:
    """Holds of some versions; None is the whole name."""
    at = Instant("2026-01-01T00:00:00.000Z")
    return Holds(
        items=tuple(NameHold(version=None if v is None else Version(v), by="ada@host", at=at) for v in versions)
    )


def plan(versions: Iterable[Metadata], holds: Holds = NO_HOLDS, run: RunRecord = "unknown") -> Retention:
    """The decision about some versions."""
    return plan_retention(Facts(versions=tuple(versions), now=NOW, holds=holds, run=run))


HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("lifetime", "age", "run", "ids", "reason"),
    [
        ("infinite", 9_000 * DAY, "gone", RUN, None),
        ("ephemeral", 9_000 * DAY, "gone", RUN, None),
        ("5m", timedelta(minutes=5), "gone", RUN, None),
        ("5m", timedelta(minutes=5, milliseconds=1), "there", RUN, "duration-expired"),
        ("2h", 2 * HOUR, "gone", RUN, None),
        ("2h", 3 * HOUR, "gone", RUN, "duration-expired"),
        ("1d", 23 * HOUR, "gone", RUN, None),
        ("1d", 25 * HOUR, "gone", RUN, "duration-expired"),
        ("1w", 7 * DAY, "gone", RUN, None),
        ("1w", 8 * DAY, "gone", RUN, "duration-expired"),
        ("1mo", 30 * DAY, "gone", RUN, None),
        ("1mo", 31 * DAY, "gone", RUN, "duration-expired"),
        ("1y", 365 * DAY, "gone", RUN, None),
        ("1y", 366 * DAY, "gone", RUN, "duration-expired"),
        ("999999999999y", 9_000 * DAY, "gone", RUN, None),
        ("1d", -9_000 * DAY, "gone", RUN, None),
        ("workflow", 9_000 * DAY, "there", RUN, None),
        ("workflow", 9_000 * DAY, "unknown", RUN, None),
        ("workflow", timedelta(0), "gone", RUN, "workflow-deleted"),
        ("job", 9_000 * DAY, "there", RUN, None),
        ("job", timedelta(0), "gone", RUN, "job-deleted"),
        ("workflow", 9_000 * DAY, "gone", {}, None),
        ("job", 9_000 * DAY, "gone", {"workflow_id": ONE}, None),
        ("job", 9_000 * DAY, "gone", {"workflow_run_id": ONE}, None),
    ],
)
def test_lifetimes(lifetime: str, age: timedelta, run: RunRecord, ids: dict[str, Any], reason: str | None) -> None:
    """The lifetime of the latest version decides about the whole name."""
    first = version(1, age=9_999 * DAY, lifetime="1m")
    latest = version(2, age=age, lifetime=lifetime, run=ids)
    made = plan([first, latest], run=run)
    assert made.reason == reason
    assert made.numbers == ((1, 2) if reason else ())
    assert made.is_whole_name == (reason is not None)


@pytest.mark.parametrize(
    ("lifetime", "ids", "run", "word"),
    [
        ("workflow", {}, "unknown", "workflowRunId"),
        ("job", {}, "unknown", "workflowRunId"),
        ("job", RUN, "unknown", "no directory"),
        ("job", RUN, "there", None),
        ("infinite", {}, "unknown", None),
    ],
)
def test_what_cannot_be_judged_is_told(lifetime: str, ids: dict[str, Any], run: RunRecord, word: str | None) -> None:
    """Data that waits for a run nobody can find is kept, with a warning."""
    warning = plan([version(1, lifetime=lifetime, run=ids)], run=run).warning
    assert (warning is None) if word is None else (word in (warning or ""))


@pytest.mark.parametrize(
    ("ages", "policy", "held_versions", "gone", "reason"),
    [
        ([0], 1, [], (), None),
        ([99], "1d", [], (), None),
        ([3, 2, 1], 3, [], (), None),
        ([3, 2, 1], 2, [], (1,), "version-count"),
        ([3, 2, 1], 1, [], (1, 2), "version-count"),
        ([3, 2, 1], 1, [1], (2,), "version-count"),
        ([3, 2, 1], 1, [1, 2], (), None),
        ([4, 3, 2, 1], 2, [4], (1, 2), "version-count"),
        ([4, 3, 2, 1], 2, [1], (2,), "version-count"),
        ([3, 2, 1], 1, [None], (), None),
        ([9, 8, 7], "5d", [], (1, 2), "version-age"),
        ([9, 4, 7], "5d", [], (1,), "version-age"),
        ([9, 8, 1], "5d", [2], (1,), "version-age"),
        ([5, 0], "5d", [], (), None),
    ],
)
def test_version_policy(
    ages: list[int], policy: VersionPolicy, held_versions: list[int | None], gone: tuple[int, ...], reason: str | None
) -> None:
    """A number keeps the highest versions, an age removes the older ones but never the highest."""
    versions = [version(n, age=age * DAY, policy=policy) for n, age in enumerate(ages, start=1)]
    made = plan(versions, held(*held_versions))
    assert (made.numbers, made.reason, made.is_whole_name) == (gone, reason, False)


def test_the_policy_of_the_latest_version_counts() -> None:
    """A policy that was changed holds for the versions written before the change."""
    assert plan([version(1, policy=9), version(2, policy=9), version(3, policy=1)]).numbers == (1, 2)
    assert plan([version(1, policy=1), version(2, policy=1), version(3, policy=9)]).numbers == ()


@pytest.mark.parametrize("more", [{"is_deleted": True}, {"is_deleted": True, "renamed_to": DataName("new")}])
def test_tombstones_do_not_expire(more: dict[str, Any]) -> None:
    """A name that ends in a tombstone or a deletion marker stays, while its versions obey the policy."""
    latest = version(3, age=99 * DAY, lifetime="1d", policy=2, **more)
    made = plan([version(1, age=99 * DAY), version(2, age=99 * DAY), latest])
    assert (made.numbers, made.reason, made.warning) == ((1,), "version-count", None)


def test_one_held_version_keeps_the_name() -> None:
    """An expired name with a held version stays, so that no old version becomes the latest."""
    versions = [version(n, age=99 * DAY, lifetime="1d", policy=2) for n in (1, 2, 3, 4)]
    assert plan(versions).numbers == (1, 2, 3, 4)
    assert plan(versions, held(2)).numbers == (1,)
    assert plan(versions, held(None)).numbers == ()
    assert plan(versions, held(77)).numbers == (1, 2, 3, 4)


def test_damage_stops_everything() -> None:
    """A name of which anything is damaged is left alone, with a warning that says why."""
    versions = tuple(version(n, age=99 * DAY, lifetime="1d", policy=1) for n in (1, 2))
    made = plan_retention(Facts(versions=versions, now=NOW, damaged=("metadata lacks 'id'",)))
    assert (made.numbers, made.reason) == ((), None)
    assert "lacks 'id'" in (made.warning or "")


def test_nothing_of_nothing() -> None:
    """A name without versions has nothing to lose."""
    assert plan([]) == Retention()


ages = st.integers(-5, 400).map(lambda days: days * DAY)
lifetimes = st.sampled_from(("infinite", "ephemeral", "workflow", "job", "1d", "5w", "1y"))
policies = st.integers(1, 6) | st.sampled_from(("1d", "5w", "1y"))


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """Everything that can be known about a name with a few versions."""
    numbers = sorted(draw(st.sets(st.integers(1, 12), max_size=8)))
    versions = [
        version(
            number,
            age=draw(ages),
            lifetime=draw(lifetimes),
            policy=draw(policies),
            run=draw(st.sampled_from(({}, RUN))),
            is_deleted=draw(st.booleans()),
        )
        for number in numbers
    ]
    return Facts(
        versions=tuple(versions),
        now=NOW,
        holds=held(*draw(st.sets(st.none() | st.integers(1, 12), max_size=3))),
        run=draw(st.sampled_from(("there", "gone", "unknown"))),
        damaged=tuple(draw(st.lists(st.just("broken"), max_size=1))),
    )


@given(facts())
def test_the_latest_goes_only_with_the_name(known: Facts) -> None:
    """The version policy never takes the latest version, and expiry takes everything."""
    made = plan_retention(known)
    everything = tuple(item.version for item in known.versions)
    assert set(made.numbers) <= set(everything)
    if made.is_whole_name:
        assert made.numbers == everything
    elif everything:
        assert everything[-1] not in made.numbers
    assert bool(made.numbers) == (made.reason is not None)


@given(facts())
def test_what_is_held_stays(known: Facts) -> None:
    """No held version goes, and no hold makes anything else go."""
    made = plan_retention(known)
    assert not [number for number in made.numbers if known.holds.is_held(number)]
    assert set(made.numbers) <= set(plan_retention(replace(known, holds=NO_HOLDS)).numbers)


@given(facts())
def test_twice_is_once(known: Facts) -> None:
    """Deciding again about what is left removes nothing."""
    gone = plan_retention(known).numbers
    left = tuple(item for item in known.versions if item.version not in gone)
    assert plan_retention(replace(known, versions=left)).numbers == ()


@given(facts())
def test_the_short_way_agrees(known: Facts) -> None:
    """Where the latest version is said to be enough, the whole history would give the same answer."""
    healthy = replace(known, damaged=())
    if known.versions and not needs_history(known.versions[-1], len(known.versions), run=known.run, now=NOW):
        short = plan_retention(replace(healthy, versions=known.versions[-1:]))
        assert short == plan_retention(healthy)


@pytest.mark.parametrize(
    ("model_type", "model_id", "standing"),
    [
        ("aws/ec2/vpc", "here", "live"),
        ("aws/ec2/vpc", "HERE", "live"),
        ("aws/ec2/vpc", "flow", "orphan"),
        ("aws/ec2/vpc", "away", "orphan"),
        ("workflow", "flow", "live"),
        ("workflow", "here", "orphan"),
        ("swamp/other", "away", "orphan"),
        *((kind, "away", "live") for kind in sorted(ALWAYS_LIVE)),
    ],
)
def test_orphans(model_type: str, model_id: str, standing: str) -> None:
    """A model is an orphan when no definition of its kind has its id."""
    model = ModelRef(model_type=ModelType(model_type), model_id=ModelId(model_id))
    definitions = Definitions(models=frozenset({"here"}), workflows=frozenset({"flow"}))
    assert standing_of(model, definitions) == standing


def test_without_workflows_nobody_can_tell() -> None:
    """Where workflow definitions are unknown no workflow is an orphan."""
    model = ModelRef(model_type=ModelType("workflow"), model_id=ModelId("flow"))
    assert standing_of(model, Definitions(models=frozenset(), workflows=None)) == "unknown"
