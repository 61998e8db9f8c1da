"""Retention and the catalog on Spark: the decisions and rows of the interactive verbs."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mire
from mire.errors import RemoteError
from mire.flow.catalog import meta_of, opened, set_meta
from mire.flow.retain import plan_retain, retain
from mire.model.artifact import Metadata, ModelRef, Owner
from mire.model.hold import Holds, NameHold
from mire.model.instant import instant_of
from mire.model.lifetime import parse_lifetime, parse_version_policy
from mire.model.names import DataName, ModelId, ModelType, Uuid, Version
from mire.pipeline.frames import RETENTION, frame_of
from mire.pipeline.jobs.catalog import rebuild_catalog
from mire.pipeline.jobs.retain import decide_rows, facts_rows, plan_store, retain_store
from mire.plan.retention import Facts, RunRecord, plan_retention

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
RUN = Uuid("9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21")
MODEL = ModelRef(model_type=ModelType("echo"), model_id=ModelId("e"))


def metadata(
    number: int, age_h: int, lifetime: str, policy: Any, *, active: bool, renamed: bool, run: bool
) -> Metadata:
    """A version of some age."""
    return Metadata(
        id=RUN,
        name=DataName("n"),
        version=Version(number),
        content_type="text/plain",
        lifetime=parse_lifetime(lifetime),
        version_policy=parse_version_policy(policy),
        streaming=False,
        tags={"type": "data"},
        owner=Owner(
            owner_type="manual", owner_ref="x", workflow_id=RUN if run else None, workflow_run_id=RUN if run else None
        ),
        created_at=instant_of(NOW - timedelta(hours=age_h)),
        is_deleted=not active,
        renamed_to=DataName("other") if renamed else None,
    )


VERSION = st.builds(
    lambda **options: options,
    age_h=st.integers(0, 80),
    lifetime=st.sampled_from(["1d", "2h", "infinite", "ephemeral", "workflow", "job"]),
    policy=st.sampled_from([1, 2, 3, "1d", "3h"]),
    active=st.sampled_from([True, True, True, False]),
    renamed=st.sampled_from([False, False, False, True]),
    run=st.booleans(),
)
NAME = st.tuples(
    st.lists(VERSION, min_size=1, max_size=6),
    st.sets(st.integers(1, 6), max_size=2),
    st.sampled_from(["there", "gone", "unknown"]),
)


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(names=st.lists(NAME, min_size=10, max_size=60))
def test_windows_decide_as_the_plan_does(
    spark: Any, names: list[tuple[list[dict[str, Any]], set[int], RunRecord]]
) -> None:
    """On any versions, policies, holds and runs what goes, and why, is what `plan_retention` says."""
    rows, wanted = [], {}
    for number, (given_versions, held, run) in enumerate(names):
        versions = [metadata(index, **each) for index, each in enumerate(given_versions, start=1)]
        items = tuple(NameHold(version=Version(each), by="x", at=instant_of(NOW)) for each in sorted(held))
        holds = Holds(items=items)
        name = DataName(f"n{number:03d}")
        rows += list(facts_rows(MODEL, name, versions, [1] * len(versions), holds, run))
        plan = plan_retention(Facts(versions=tuple(versions), now=NOW, holds=holds, run=run))
        if plan.warning is not None:
            wanted[name] = "odd"
        elif plan.reason is not None:
            wanted[name] = (plan.numbers, plan.reason, plan.is_whole_name, len(plan.numbers))
    found = decide_rows(frame_of(spark, rows, RETENTION), NOW).collect()
    assert {
        row.name: "odd" if row.is_odd else (tuple(row.versions), row.reason, row.is_whole, row.size_bytes)
        for row in found
    } == wanted


def fill(store: mire.Store) -> None:
    """Names with surplus versions, and some without."""
    for model, number in itertools.product(("a", "b"), range(4)):
        store.model("echo", model).put("state", f"{number}", version_policy=2)
    store.model("echo", "c").put("note", "stays")


def test_a_run_removes_what_the_interactive_verb_would(spark: Any, repo: Path) -> None:
    """The plans are equal, damage included; the run removes what its dry run said, and then nothing is left."""
    with mire.open(repo) as store:
        fill(store)
        ds = store.datastore
        Path(ds.tier, "data/echo/b/state/1/metadata.yaml").write_text("{")
        now = datetime.now(UTC)
        wanted = sorted(map(str, plan_retain(ds, now=now)))
        assert sorted(map(str, plan_store(spark, ds, now))) == wanted
        planned = retain_store(spark, ds, dry_run=True)
        done = retain_store(spark, ds)
        assert done.decisions == planned.decisions
        assert done.versions_removed == 2
        assert len(done.findings) == 1
        assert not retain(ds, dry_run=True).decisions


def test_the_catalog_has_the_same_rows(spark: Any, repo: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    """A catalog whose versions were read by tasks answers as any other; a dry run has its numbers and leaves it."""
    with mire.open(repo) as store:
        fill(store)
        before = [(each["modelId"], each["version"]) for each in store.query('modelType == "echo"')]
        with opened(store.datastore) as catalog:
            set_meta(catalog, "planted", "here")
        planned = rebuild_catalog(spark, store.datastore, dry_run=True)
        with opened(store.datastore) as catalog:
            assert meta_of(catalog, "planted") == "here"
        done = rebuild_catalog(spark, store.datastore)
        with opened(store.datastore) as catalog:
            assert meta_of(catalog, "planted") is None
        assert (planned.names, planned.read, planned.errors) == (3, 9, [])
        assert (done.names, done.read, done.errors) == (3, 9, [])
        assert [(each["modelId"], each["version"]) for each in store.query('modelType == "echo"')] == before
    code, out, _ = run("catalog", "rebuild", "--pipeline", "--repo", str(repo))
    assert (code, out) == (0, "9 versions of 3 names\n")
    code, out, _ = run("retain", "--pipeline", "--dry-run", "--repo", str(repo))
    assert code == 0
    assert "version-count" in out


def test_a_worker_that_does_not_see_the_store_is_told(
    spark: Any, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the store's directory is not on a worker, or is another one, no catalog is empty and nothing is kept."""
    # A path that every process sees as one of its own.
    name = f"mire-{tmp_path.name}"
    theirs = Path.cwd() / name
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    (repo / ".swamp.yaml").write_text(
        f'swampVersion: "1"\nrepoId: "{RUN}"\ndatastore:\n  type: filesystem\n  path: /proc/self/cwd/{name}\n'
    )
    with mire.open(repo) as store:
        fill(store)
        ds = store.datastore
        for job in (rebuild_catalog, retain_store):
            with pytest.raises(RemoteError, match=rf"a worker does not see '/proc/self/cwd/{name}'") as raised:
                job(spark, ds, dry_run=True)
            assert raised.value.kind == "unreachable"
        theirs.mkdir()
        try:
            with pytest.raises(RemoteError, match=r"a worker does not see '/proc/self/cwd/.*/data/echo/./\w+'"):
                rebuild_catalog(spark, ds, dry_run=True)
            assert retain_store(spark, ds, dry_run=True).decisions == retain(ds, dry_run=True).decisions != []
        finally:
            theirs.rmdir()
