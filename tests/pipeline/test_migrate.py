"""From any store to any store: everything arrives, verified, and counts only then."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.objectstore import open_local
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Absent
from mire.edge.turn import open_turn
from mire.errors import ConflictError, FormatError, InputError, NotFoundError, RemoteError
from mire.pipeline import carrier, round_spark, rounds
from mire.pipeline.jobs import migrate as job
from mire.pipeline.jobs.export import export_store
from mire.pipeline.jobs.migrate import migrate_store
from mire.pipeline.jobs.rebuild import rebuild_index
from mire.pipeline.jobs.repair import repair_store
from mire.pipeline.jobs.verify import verify_store
from mire.pipeline.round_here import round_here
from mire.pipeline.round_spark import round_on_spark
from mire.pipeline.rounds import Looked, Moved, OpenRound, Round
from mire.pipeline.sides import open_source, open_target
from mire.pipeline.store import StoreSpec, open_spec
from mire.testing.s3server import S3Server
from mire.wire.relpath import is_internal
from sparks import ACCESS
from sync_world import committed


def fill(store: mire.Store) -> None:
    """A few versions."""
    for number in range(2):
        store.model("aws/ec2/vpc", "vpc-1").put("state", f"{number}")
    store.model("echo", "e").put("note", "hello")


def objects(root: Path, namespace: str = "") -> dict[str, bytes]:
    """The data objects of a namespace."""
    remote = Prefixed(open_local(str(root)), namespace) if namespace else open_local(str(root))
    found = {stat.key: remote.get(stat.key).data for stat in remote.list() if not is_internal(stat.key)}
    return {key: data for key, data in found.items() if namespace or not key.startswith("team/")}


def move(open_round: OpenRound, source: str, target: str, root: Path, **options: Any) -> Moved:
    """Migrate between two addresses."""
    one = open_source(source, namespace=options.pop("from_namespace", ""), repo_dir=str(root))
    namespace, index = options.pop("to_namespace", ""), options.pop("index", "dual")
    dry_run = options.get("dry_run", False)
    other = open_target(target, namespace=namespace, index=index, repo_dir=str(root), dry_run=dry_run)
    return migrate_store(open_round, one, other, **options)


@pytest.fixture(params=["spark", "here"])
def open_round(request: pytest.FixtureRequest) -> OpenRound:
    """Where it is done: on Spark, or in this process."""
    if request.param == "here":
        return round_here
    spark = request.getfixturevalue("spark")
    return lambda: round_on_spark(spark)


def test_between_stores_forms_and_namespaces(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    """A sharded store of nobody's becomes a dual one of a namespace, and back; the source stays as it was."""
    fill(synced())
    one, two, three = tmp_path / "remote", tmp_path / "two", tmp_path / "three"
    two.mkdir()
    three.mkdir()
    before = snapshot(one)
    planned = move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, to_namespace="team", dry_run=True)
    done = move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, to_namespace="team")
    assert (planned.objects, planned.copied, planned.size_bytes) == (done.objects, done.copied, done.size_bytes)
    assert snapshot(one) == before
    assert objects(two, "team") == objects(one)
    assert committed(Prefixed(open_local(str(two)), "team")) == committed(open_local(str(one)))
    assert (two / "team/.datastore-index.json").exists()
    move(open_round, f"cached:{two}", f"cached:{three}", tmp_path, from_namespace="team", index="sharded")
    assert objects(three) == objects(one)
    assert committed(open_local(str(three))) == committed(open_local(str(one)))
    assert not (three / ".datastore-index.json").exists()


def test_from_and_to_plain_directories(
    open_round: OpenRound, tmp_path: Path, synced: Callable[..., mire.Store]
) -> None:
    """A directory that is used in place becomes a store with hashes; a store becomes a directory in one rename."""
    repo = tmp_path / "plain"
    repo.mkdir()
    with mire.open(repo) as store:
        fill(store)
        tier = store.datastore.tier
    store_dir, final = tmp_path / "store", tmp_path / "final"
    store_dir.mkdir()
    done = move(open_round, f"file://{tier}", f"cached:{store_dir}", tmp_path)
    assert (done.copied, done.there) == (8, 0)
    assert all(entry.sha256 for entry in committed(open_local(str(store_dir))).values())
    move(open_round, f"cached:{store_dir}", f"file://{final}", tmp_path)
    assert objects(final) == objects(store_dir) == objects(Path(tier))
    assert [path.name for path in tmp_path.iterdir() if "migrating" in path.name] == []
    with pytest.raises(ConflictError, match="is not empty"):
        move(open_round, f"cached:{store_dir}", f"file://{final}", tmp_path)


def test_a_run_that_died_is_gone_on_with(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """What is there is verified by its hash: sound objects stay, rotten ones are replaced; again changes nothing.

    The dry run has the same numbers.
    """
    fill(synced())
    one, two = tmp_path / "remote", tmp_path / "two"
    two.mkdir()
    for key, data in list(objects(one).items())[:3]:
        (two / key).parent.mkdir(parents=True, exist_ok=True)
        (two / key).write_bytes(data)
    key, data = list(objects(one).items())[3]
    (two / key).parent.mkdir(parents=True, exist_ok=True)
    (two / key).write_bytes(b"x" * len(data))
    planned = move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, index="sharded", dry_run=True)
    done = move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, index="sharded")
    assert (done.copied, done.there) == (planned.copied, planned.there) == (5, 3)
    assert objects(two) == objects(one)
    meta = (two / "_index/_meta.json").read_bytes()
    again = move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, index="sharded")
    assert (again.copied, again.there) == (0, 8)
    assert (two / "_index/_meta.json").read_bytes() == meta


def test_damage_and_foreign_data_stop_it_before_anything_counts(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A rotten object at the source, or data of somebody else in the target: an error, and no index in the target."""
    fill(synced())
    one, two = tmp_path / "remote", tmp_path / "two"
    two.mkdir()
    (one / "data/echo/e/note/1/raw").write_text("jello")
    with pytest.raises(FormatError, match=r"data/echo/e/note/1/raw.*nothing was switched.*run again to go on"):
        move(open_round, f"cached:{one}", f"cached:{two}", tmp_path)
    assert committed(open_local(str(two))) == {}
    (one / "data/echo/e/note/1/raw").write_text("hello")
    other = synced("other", remote=two)
    other.model("echo", "x").put("note", "mine")
    with pytest.raises(ConflictError, match="already has data of its own"):
        move(open_round, f"cached:{one}", f"cached:{two}", tmp_path)
    (one / "_index/data--echo--e.json").unlink()
    (tmp_path / "three").mkdir()
    with pytest.raises(FormatError, match="is damaged at 'data--echo--e'"):
        move(open_round, f"cached:{one}", f"cached:{tmp_path / 'three'}", tmp_path)


def test_what_the_target_lists_is_not_replaced(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A target that went its own way under the same paths is refused before a byte of it is another.

    So is one whose index agrees and whose object does not: nobody knows whose those bytes are.
    """
    first = synced()
    fill(first)
    one, two = tmp_path / "remote", tmp_path / "two"
    two.mkdir()
    move(open_round, f"cached:{one}", f"cached:{two}", tmp_path)
    listed = two / "data/echo/e/note/1/raw"
    listed.write_text("jello")
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match=r"target lists 'data/echo/e/note/1/raw'.*it is not replaced"):
            move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, dry_run=dry_run)
    assert listed.read_text() == "jello"
    listed.write_text("hello")
    synced("other", remote=two, index="dual").model("aws/ec2/vpc", "vpc-1").put("state", "theirs")
    first.model("aws/ec2/vpc", "vpc-1").put("state", "ours!!")
    before = objects(two), committed(open_local(str(two)))
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match=r"data of its own, for example .*which is not what the source has"):
            move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, dry_run=dry_run)
    assert (objects(two), committed(open_local(str(two)))) == before


def test_a_source_that_changes_is_followed(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is published, replaced or removed after the index was read is as it is in the end; a store is not damaged
    because it changed. One that changes in every round is given up, and nothing counts.
    """  # noqa: D205 - the first sentence is long
    store, looks = synced(), 0
    fill(store)
    one, final = tmp_path / "remote", tmp_path / "final"

    class Late:
        """A round in the middle of which the source changes."""

        def __init__(self, really: Round) -> None:
            self.rels = really.rels
            self._really = really

        def look(self, source: StoreSpec) -> Looked:
            nonlocal looks
            looks += 1
            if looks == 2:  # it was copied in the first round
                store.model("aws/ec2/vpc", "vpc-1").delete("state", version=1)
            return self._really.look(source)

        def copies(self, *given: Any, **options: Any) -> Iterator[dict[str, Any]]:
            if looks == 1:  # the index was read, nothing is copied yet
                store.model("aws/ec2/vpc", "vpc-1").put("state", "new")
                store.model("echo", "e").delete("note")
            return self._really.copies(*given, **options)

    @contextmanager
    def open_late() -> Iterator[Round]:
        with open_round() as really:
            yield Late(really)

    done = move(open_late, f"cached:{one}", f"file://{final}", tmp_path)
    assert looks == 2
    assert objects(final) == objects(one)
    assert (done.objects, done.copied, done.there) == (len(objects(one)), len(objects(one)), 0)
    looks = 0
    monkeypatch.setattr(rounds, "_ROUNDS", 1)
    (tmp_path / "two").mkdir()
    store.model("echo", "e").put("note", "hello")
    with pytest.raises(RemoteError, match="was changed again and again while it was copied: nothing was switched"):
        move(open_late, f"cached:{one}", f"cached:{tmp_path / 'two'}", tmp_path)
    assert committed(open_local(str(tmp_path / "two"))) == {}


def test_spark_is_started_for_many_objects_only(
    run: Callable[..., tuple[int, str, str]],
    synced: Callable[..., mire.Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From as many on as are worth it; --pipeline and --no-pipeline insist, and a master is none without Spark."""
    fill(synced())  # 8 objects
    started: list[Any] = []
    really = round_spark.round_on_spark
    monkeypatch.setattr(round_spark, "round_on_spark", lambda spark: started.append(spark) or really(spark))
    for number, (enough, options, is_started) in enumerate(
        [
            (7, (), True),
            (8, (), False),
            (sys.maxsize, (), False),
            (sys.maxsize, ("--pipeline",), True),
            (0, ("--no-pipeline",), False),
        ]
    ):
        monkeypatch.setattr(carrier, "worth_it", lambda _, enough=enough: enough)
        started.clear()
        for source in (f"cached:{tmp_path}/remote", f"file://{tmp_path}/remote"):
            target = f"file://{tmp_path}/copy-{number}-{source[0]}"
            code, out, err = run("migrate", source, target, *options)
            assert (code, err) == (0, "")
            assert "copied         8" in out
        assert len(started) == 2 * is_started
    code, _, err = run("migrate", source, f"file://{tmp_path}/x", "--no-pipeline", "--master", "local[2]")
    assert (code, "--master does not go with --no-pipeline" in err) == (2, True)


def test_what_a_dead_migration_left_is_not_part_of_another(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory gets what its source has now: not what it had when a run died, nor what another source has.

    Two migrations do not fill it at once, and what no migration left is not touched.
    """
    store = synced()
    fill(store)
    fill(synced("other", remote=tmp_path / "two"))
    one, two, final = f"cached:{tmp_path / 'remote'}", f"cached:{tmp_path / 'two'}", tmp_path / "final"
    staging = tmp_path / "final.mire-migrating"
    staging.mkdir()
    (staging / "mine").write_text("mine")
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match="does not say which migration left it: move it away"):
            move(open_round, one, f"file://{final}", tmp_path, dry_run=dry_run)
    (staging / "mine").unlink()

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job, "_show", die)
        with pytest.raises(KeyboardInterrupt):
            move(open_round, one, f"file://{final}", tmp_path)
    store.model("echo", "e").delete("note")
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match=r"what a migration from 'file://.*/remote' left, not from .*/two"):
            move(open_round, two, f"file://{final}", tmp_path, dry_run=dry_run)
    with (
        open_turn(str(staging / job._LOCK), wait_ms=0.0, what="a test"),
        pytest.raises(RemoteError, match="another migration into this directory is at work"),
    ):
        move(open_round, one, f"file://{final}", tmp_path)
    assert (staging / "data/echo/e/note/1/raw").exists()
    done = move(open_round, one, f"file://{final}", tmp_path)
    assert (done.copied, done.there) == (1, 5)  # how high the versions of the name were is said instead
    assert objects(final) == objects(tmp_path / "remote")
    assert sorted(path.name for path in final.iterdir()) == ["data"]
    assert not (final / "data/echo/e/note/1").exists()
    assert not staging.exists()


def test_a_late_attempt_leaves_nothing_where_the_directory_was(tmp_path: Path) -> None:
    """A task that is still at it when the directory gets its name stores nothing, and makes no directory."""
    staging = tmp_path / "final.mire-migrating"
    staging.mkdir()
    late = open_spec(StoreSpec(type="filesystem", settings=str(staging)))

    def chunks() -> Iterator[bytes]:
        yield b"late"
        job._show(str(staging), str(tmp_path / "final"))

    with pytest.raises(NotFoundError):
        late.put_stream_if("data/echo/e/note/1/raw", chunks, Absent())
    with pytest.raises(NotFoundError):
        late.put_if("data/echo/e/note/1/raw", b"late", Absent())
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
    assert list((tmp_path / "final").iterdir()) == []


def test_a_dry_run_leaves_no_trace(
    run: Callable[..., tuple[int, str, str]],
    synced: Callable[..., mire.Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: Callable[[Path], Any],
) -> None:
    """Neither probes in the target nor a cache of its own: it only reads."""
    fill(synced())
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    before = snapshot(tmp_path / "home")
    with S3Server(buckets=["bucket"]) as server:
        target = f"s3://bucket/copy?region=eu-central-1&forcePathStyle=true&endpoint={server.url}"
        code, out, err = run("migrate", f"cached:{tmp_path}/remote", target, "--dry-run")
        assert (code, err) == (0, "")
        assert "to copy        8" in out
        assert {entry.operation for entry in server.log()} <= {"GetObject", "HeadObject", "ListObjectsV2"}
    assert snapshot(tmp_path / "home") == before


def test_what_cannot_be_migrated_is_refused(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A source that is not there, and one store given twice, are refused."""
    (tmp_path / "remote").mkdir()
    with pytest.raises(InputError, match="are the same store"):
        move(open_round, f"file://{tmp_path}/remote", f"file://{tmp_path}/remote", tmp_path)
    with pytest.raises(NotFoundError, match="is not there"):
        move(open_round, f"file://{tmp_path}/nowhere", f"file://{tmp_path}/x", tmp_path)


def test_a_newer_format_is_not_even_read(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Rules that do not hold there any more decide nothing: neither a migration nor any other job begins."""
    fill(synced())
    marker = tmp_path / "remote/_control/datastore-format"
    marker.parent.mkdir(exist_ok=True)
    marker.write_text('{"format": 3}')
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/datastore-format.json").write_text('{"format": 3}')
    for source in (f"cached:{tmp_path}/remote", f"file://{tmp_path}/plain"):
        with pytest.raises(FormatError, match="upgrade mire; never delete the marker"):
            open_source(source, namespace="", repo_dir=str(tmp_path))
    with pytest.raises(FormatError, match="upgrade mire; never delete the marker"):
        open_target(f"cached:{tmp_path}/remote", namespace="", index="dual", repo_dir=str(tmp_path), dry_run=True)
    ds = synced("late").datastore
    for begin in (
        lambda: verify_store(spark, ds),
        lambda: export_store(spark, ds, str(tmp_path / "out"), dry_run=True),
        lambda: rebuild_index(spark, ds, dry_run=True),
        lambda: repair_store(spark, ds, dry_run=True),
    ):
        with pytest.raises(FormatError, match="upgrade mire; never delete the marker"):
            begin()


def test_migrate_on_the_command_line(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """The numbers are shown, and the verdict."""
    fill(synced())
    code, out, err = run("migrate", f"cached:{tmp_path}/remote", f"file://{tmp_path}/copy")
    assert (code, err) == (0, "")
    assert "copied         8" in out
    assert "everything is there, and counts" in out


def test_what_strayed_from_a_tenant_stays_behind(
    open_round: OpenRound, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """An index that lists somebody else's path is not followed into that part; the numbers of the dry run agree."""
    fill(synced(index="dual"))
    one, two, stray = tmp_path / "remote", tmp_path / "two", "team/data/echo/e/note/1/raw"
    monolith = json.loads((one / ".datastore-index.json").read_text())
    monolith["entries"][stray] = monolith["entries"]["data/echo/e/note/1/raw"]
    (one / ".datastore-index.json").write_text(json.dumps(monolith))
    (one / stray).parent.mkdir(parents=True)
    (one / stray).write_text("hello")
    two.mkdir()
    planned = move(open_round, f"cached:{one}", f"cached:{two}", tmp_path, dry_run=True)
    done = move(open_round, f"cached:{one}", f"cached:{two}", tmp_path)
    assert done.left_out == planned.left_out == (stray,)
    assert (planned.objects, planned.size_bytes) == (done.objects, done.size_bytes)
    assert not (two / "team").exists()
