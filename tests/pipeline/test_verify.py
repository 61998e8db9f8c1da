"""Verifying a whole store on Spark: every kind of damage is found, by the judgement of the interactive verb."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mire
from mire.errors import InputError, RemoteError
from mire.flow.mark import marking
from mire.flow.verify import verify
from mire.model.index import Entry
from mire.pipeline.frames import ENTRIES, LOCAL, OBJECTS, frame_of
from mire.pipeline.jobs import verify as job
from mire.pipeline.jobs.verify import verify_store
from mire.pipeline.stages.compare import compare, decide
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import entry_row
from mire.plan.threeway import Here, Value, plan_pull_of, plan_push_of
from mire.wire.entry import encode_member

STATE = "data/aws/ec2/vpc/vpc-1/state"


def fill(store: mire.Store) -> None:
    """A few names and a note, published."""
    for number in range(3):
        store.model("aws/ec2/vpc", "vpc-1").put("state", f'{{"n": {number}}}', content_type="application/json")
    store.model("aws/ec2/vpc", "vpc-2").put("state", "two")
    store.model("echo", "e").put("note", "hello")


def kinds_of(found: Any) -> set[tuple[str, str]]:
    """What was found where."""
    return {(finding.kind, finding.path) for finding in found.findings}


@pytest.mark.parametrize("index", ["dual", "sharded"])
def test_a_sound_store_has_no_findings(spark: Any, synced: Callable[..., mire.Store], index: str) -> None:
    """Nothing is found where nothing is wrong, and the numbers are those of the store."""
    store = synced(index=index)
    fill(store)
    done = verify_store(spark, store.datastore, deep=True)
    assert (done.findings, done.kinds, done.is_damaged) == ([], {}, False)
    wanted = verify(store.datastore, deep=True)
    assert (done.form, done.entries, done.objects, done.inspected) == (index, wanted.entries, wanted.objects, 13)
    assert (done.to_push, done.to_pull) == (0, 0)


def test_every_kind_of_damage_is_found(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    """Each damage is one finding under its path; nothing is changed; all of it is in the table."""
    store, remote = synced(), tmp_path / "remote"
    fill(store)
    (remote / STATE / "1/raw").unlink()
    (remote / STATE / "2/raw").write_text("longer than before")
    (remote / STATE / "3/raw").write_text('{"n": 9}')
    (remote / STATE / "2/metadata.yaml").write_text("version: [")
    (remote / "data/aws/ec2/vpc/vpc-2/state/latest").write_text("7")
    (remote / "logs").mkdir()
    (remote / "logs/stray").write_text("stray")
    (remote / "_index/audit.json").write_text("{")
    before = snapshot(remote)
    done = verify_store(spark, store.datastore, deep=True, table=str(tmp_path / "findings"))
    assert kinds_of(done) == {
        ("dangling", f"{STATE}/1/raw"),
        ("object_differs", f"{STATE}/2/raw"),
        ("object_hash", f"{STATE}/3/raw"),
        ("checksum", f"{STATE}/3/raw"),
        ("object_differs", f"{STATE}/2/metadata.yaml"),
        ("metadata", f"{STATE}/2/metadata.yaml"),
        ("object_hash", "data/aws/ec2/vpc/vpc-2/state/latest"),
        ("marker", "data/aws/ec2/vpc/vpc-2/state/latest"),
        ("orphan", "logs/stray"),
        ("shard_unreadable", "audit"),
    }
    assert done.is_damaged
    assert sum(done.kinds.values()) == len(done.findings)
    table = {(row.kind, row.path, row.message) for row in spark.read.parquet(str(tmp_path / "findings")).collect()}
    assert table == {(finding.kind, finding.path, finding.message) for finding in done.findings}
    assert snapshot(remote) == before


def test_a_table_of_findings_replaces_nothing_but_an_earlier_one(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    """What is no table of findings stays, and is refused before the work; an earlier table is replaced as a whole."""
    store, out = synced(), tmp_path / "out"
    fill(store)
    (tmp_path / "remote/logs").mkdir()
    (tmp_path / "remote/logs/stray").write_text("stray")
    spark.range(1).write.parquet(str(tmp_path / "taken/theirs"))
    (tmp_path / "taken/file").write_text("theirs")
    before = snapshot(tmp_path / "taken")
    for place in ("taken", "taken/theirs", "taken/file"):
        with pytest.raises(InputError, match="name "):
            verify_store(spark, store.datastore, table=str(tmp_path / place))
    with pytest.raises(InputError, match="is there already"):
        verify_store(spark, store.datastore, table=f"file://{tmp_path}/taken/theirs")
    assert snapshot(tmp_path / "taken") == before

    # Nothing says what an object should be that no index lists: it is not read.
    done = verify_store(spark, store.datastore, deep=True, table=str(out))
    assert (done.kinds, done.objects, done.inspected) == ({"orphan": 1}, done.entries + 1, done.entries)
    assert [row.path for row in spark.read.parquet(str(out)).collect()] == ["logs/stray"]
    (tmp_path / "remote/logs/stray").unlink()
    verify_store(spark, store.datastore, table=str(out))
    assert spark.read.parquet(str(out)).count() == 0
    assert sorted(name for name in os.listdir(tmp_path) if "out" in name) == ["out"]


def test_a_table_that_spark_writes_elsewhere_is_an_error(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark's path is another directory than ours, nobody is told that all findings are there."""
    store, theirs = synced(), Path.cwd()
    fill(store)
    (tmp_path / "remote/stray").write_text("stray")
    monkeypatch.chdir(tmp_path)
    try:
        # A path that every process sees as one of its own.
        with pytest.raises(RemoteError, match="Spark wrote 1 findings, and 0 of them are in"):
            verify_store(spark, store.datastore, table=f"/proc/self/cwd/{tmp_path.name}/out")
    finally:
        shutil.rmtree(theirs / tmp_path.name)
    assert os.listdir(tmp_path / tmp_path.name) == []


def test_without_reading_objects_sizes_and_listing_are_compared(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """Without `deep` no object is read, and the findings are those of the interactive verb that looks for all."""
    store, remote = synced(), tmp_path / "remote"
    fill(store)
    (remote / STATE / "1/raw").unlink()
    (remote / STATE / "2/raw").write_text("longer than before")
    (remote / STATE / "3/raw").write_text('{"n": 9}')
    (remote / "_index/data--echo--e.json").unlink()
    done = verify_store(spark, store.datastore)
    assert done.inspected == 0
    interactive = kinds_of(verify(store.datastore, deep=True))
    # What the missing shard listed has objects, and both sides agreed on them.
    assert ("unlisted", "data/echo/e/note/1/raw") in interactive
    assert kinds_of(done) == interactive


def test_partitions_that_lag_behind_are_found(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Beside a monolith a partition that says something else is told, as the interactive verb tells it."""
    store = synced(index="dual")
    fill(store)
    shard = tmp_path / "remote/_index/data--aws--ec2--vpc--vpc-1.json"
    shard.write_text(shard.read_text().replace('"size":8', '"size":9', 1))
    (tmp_path / "remote/_index/data--echo--e.json").unlink()
    done = verify_store(spark, store.datastore)
    found = {("partition_differs", "data--aws--ec2--vpc--vpc-1"), ("partition_differs", "data--echo--e")}
    assert kinds_of(done) == found
    assert kinds_of(verify(store.datastore)) == found


def test_what_is_not_synced_is_counted(spark: Any, synced: Callable[..., mire.Store]) -> None:
    """Changes here and there are no damage: they are what a push and a pull would do."""
    one, other = synced("one"), synced("other")
    fill(one)
    other.model("echo", "o").put("note", "theirs")
    path = Path(one.datastore.tier) / "logs/mine"
    with marking(one.datastore, str(path)):
        path.parent.mkdir()
        path.write_text("ours")
    done = verify_store(spark, one.datastore)
    assert (done.to_push, done.to_pull, done.is_damaged) == (1, 3, False)


@pytest.mark.parametrize("index", ["sharded", "dual"])
def test_a_store_in_use_is_not_damaged(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """What others push and remove while a store is verified is no damage; what is damaged still is."""
    one, other = synced("one", index=index), synced("other", index=index)
    fill(one)
    for number in range(9):
        other.model("echo", "busy").put("note", f"{number}")
    (tmp_path / "remote" / STATE / "1/raw").unlink()

    def listed_in_between(*arguments: Any, **options: Any) -> Any:
        # The marker gets longer, two names go, and after the listing a name comes and one gets another version.
        other.model("echo", "busy").put("note", "ten")
        other.model("echo", "e").delete("note")
        found = frame_of(spark, [tuple(row) for row in scan(*arguments, **options).collect()], OBJECTS)
        other.model("echo", "new").put("note", "new")
        other.model("aws/ec2/vpc", "vpc-2").put("state", "three")
        return found

    monkeypatch.setattr(job, "scan", listed_in_between)
    done = verify_store(spark, one.datastore, deep=True)
    assert {(each.kind, each.path) for each in done.findings if each.is_damage} == {("dangling", f"{STATE}/1/raw")}
    assert done.damaged == 1
    notes = {(each.path, each.remedy) for each in done.findings if not each.is_damage and each.kind == "dangling"}
    remedy = "it was changed while the store was verified: verify again"
    names = ("1/metadata.yaml", "1/raw", "latest")
    assert notes == {(f"data/echo/e/note/{name}", remedy) for name in names}


def test_a_directory_that_is_used_in_place_is_verified_by_its_metadata(spark: Any, repo: Path) -> None:
    """Without an index nothing is an orphan; read deeply, content is compared with what its metadata says."""
    with mire.open(repo) as store:
        fill(store)
        raw = Path(store.datastore.tier) / STATE / "2/raw"
        raw.write_text("other")
        done = verify_store(spark, store.datastore, deep=True)
        assert (done.form, done.entries, kinds_of(done)) == ("none", 0, {("checksum", f"{STATE}/2/raw")})


SIDE = st.one_of(
    st.none(),
    st.builds(
        Entry,
        size_bytes=st.integers(0, 2),
        last_modified=st.sampled_from(["t1", "t2"]),
        sha256=st.sampled_from([None, "a" * 64, "b" * 64]),
        extra=st.sampled_from([{}, {"more": [1]}]),
    ),
)
VALUE = st.one_of(
    st.none(), st.builds(Value, size_bytes=st.integers(0, 2), sha256=st.sampled_from(["a" * 64, "b" * 64]))
)
PATHS = st.lists(
    st.tuples(st.sampled_from(["same", "changed", "removed", "missing"]), SIDE, SIDE, VALUE), min_size=1, max_size=60
)


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(paths=PATHS)
def test_pipeline_and_interactive_path_decide_alike(
    spark: Any, paths: list[tuple[Here, Entry | None, Entry | None, Value | None]]
) -> None:
    """On any input the joined rows come to the decisions that the plan makes of the same sides."""
    local, entries, wanted = [], [], {}
    for number, (here, base, remote, value) in enumerate(paths):
        rel = f"logs/{number}"
        mine = value if here == "changed" else None
        if remote is not None:
            entries.append(entry_row(rel, "logs", remote))
        size, sha256 = (None, None) if mine is None else (mine.size_bytes, mine.sha256)
        local.append((rel, here, size, sha256, None if base is None else encode_member(rel, base)))
        wanted[rel] = plan_push_of(here, base, remote, mine), plan_pull_of(here, base, remote, mine)
    compared = compare(frame_of(spark, entries, ENTRIES), frame_of(spark, [], OBJECTS), frame_of(spark, local, LOCAL))
    assert {row.rel: (row.push, row.pull) for row in decide(compared).collect()} == wanted
