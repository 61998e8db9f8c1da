"""Every job of the pipeline: how it is run, when it counts, and how its result is known to be right.

A job that is not in `JOBS` fails a test: each of them goes through the same failures.
"""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.testing import assertDataFrameEqual

import mire
from mire.edge.objectstore import open_local
from mire.flow.catalog import meta_of, opened, set_meta
from mire.flow.imports import open_imports
from mire.flow.mark import mark_all
from mire.flow.pull import pull
from mire.flow.push import push
from mire.flow.verify import verify
from mire.pipeline.jobs.export import read_export
from mire.wire.relpath import is_internal
from sync_world import committed

FILES = 12
PLANTED = "planted"
STATE = "data/aws/ec2/vpc/vpc-1/state"


@dataclass(kw_only=True)
class World:
    """What a job works on."""

    root: Path
    repos: Path
    """Where `synced` makes repositories."""
    synced: Callable[..., mire.Store]
    aged: Callable[[Path], None]
    stores: dict[str, mire.Store] = field(default_factory=dict)
    before: Any = None
    """What was true before something was damaged, or before the job."""
    target: Path | None = None
    """Where what a job makes is, if not beside everything else."""
    file_bytes: int = 10

    def anew(self) -> "World":
        """Another world, where nothing happened yet."""
        root = self.root / "anew"
        root.mkdir()
        return World(root=root, repos=self.repos, synced=self.synced, aged=self.aged)

    @property
    def made(self) -> Path:
        """Where what a job makes is."""
        return self.target or self.root

    @property
    def remote(self) -> Path:
        """The shared store."""
        return self.root / "remote"

    @property
    def repo(self) -> str:
        """The repository that the job is about."""
        return self.stores["one"].datastore.repo_dir

    def open(self, name: str = "one", **options: Any) -> mire.Store:
        """A store whose remote is shared; the cache of the one that the job is about is where the job makes things."""
        home = None if name != "one" or self.target is None else str(self.target)
        repo = os.path.relpath(self.root / name, self.repos)
        self.stores[name] = self.synced(repo, home=home, remote=self.remote, **options)
        return self.stores[name]

    def open_plain(self) -> mire.Store:
        """A store that is a directory."""
        path = self.root / "plain"
        path.mkdir()
        self.stores["one"] = mire.open(path)
        return self.stores["one"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job; `visible` is what must not change before its commit, `check` says whether the result is right."""

    name: str
    module: str
    stage: str
    """The table (in `pipeline/frames`) whose tasks matter."""
    slow: str | None = None
    """The one of which a task is run twice, if that is another."""
    prepare: Callable[[World], object]
    arguments: Callable[[World], list[str]]
    visible: Callable[[World], object]
    check: Callable[[World, Any, dict[str, Any]], object]
    commit: tuple[str, str] | None = None
    """The function that makes the result count; None for one that only looks."""
    code: int = 0
    leaves: bool = False
    """Whether a run that failed leaves what the next one uses."""
    is_disturbed: bool = True
    """Whether its tasks are to be disturbed: not where they are those of another one."""
    is_cancelled: bool = False
    """Whether it is tried with a cancelled job, and not with one that fails."""
    has_dry_run: bool = True
    differs: tuple[str, ...] = ("dryRun",)
    """Members of the document that a dry run cannot know."""


def fill(store: mire.Store) -> None:
    """A few versions."""
    for number in range(3):
        store.model("aws/ec2/vpc", "vpc-1").put("state", f'{{"n": {number}}}', content_type="application/json")
    store.model("echo", "e").put("note", "hello")


def scribble(store: mire.Store, file_bytes: int) -> None:
    """Files that are not pushed yet."""
    for number in range(FILES):
        path = Path(store.datastore.tier) / f"logs/{number % 3}/{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number:0{file_bytes}}")
    mark_all(store.datastore)


def files_of(store: mire.Store) -> dict[str, bytes]:
    """What is in a cache."""
    tier = Path(store.datastore.tier)
    found = {str(path.relative_to(tier)): path.read_bytes() for path in tier.rglob("*") if path.is_file()}
    return {rel: data for rel, data in found.items() if not is_internal(rel)}


def objects(root: Path) -> dict[str, bytes]:
    """The data objects of a store."""
    remote = open_local(str(root))
    return {stat.key: remote.get(stat.key).data for stat in remote.list() if not is_internal(stat.key)}


def values(root: Path) -> dict[str, tuple[int, str | None]]:
    """What an index says."""
    return {rel: (entry.size_bytes, entry.sha256) for rel, entry in committed(open_local(str(root))).items()}


def commits(root: Path) -> int:
    """How often a sharded index was committed."""
    path = root / "_index/_meta.json"
    return int(json.loads(path.read_text())["commitSeq"]) if path.exists() else 0


def index_of(root: Path) -> tuple[int, dict[str, tuple[int, str | None]]]:
    """What counts of a store."""
    return commits(root), values(root)


def versions_of(store: mire.Store) -> list[tuple[str, str, int]]:
    """Every version that a reader sees."""
    return sorted(
        (model.id, row.name, number)
        for model in store.models()
        for row in model.names()
        for number in model.versions(row.name)
    )


def answers(store: mire.Store) -> list[tuple[Any, ...]]:
    """What the catalog says of every version."""
    asked = store.query("version > 0")
    return sorted((row["modelId"], row["name"], row["version"], row["isLatest"], row["size"]) for row in asked)


def temporaries(*roots: str | Path) -> list[str]:
    """Files that were on their way."""
    return [str(path) for root in roots for path in Path(root).rglob("*.tmp")]


# --- push and pull


def prepare_push(world: World) -> None:
    """A cache with files that nobody has."""
    scribble(world.open(), world.file_bytes)


def check_push(world: World, spark: Any, document: dict[str, Any]) -> None:
    """Every file is stored and listed, in one commit."""
    assert objects(world.remote) == files_of(world.stores["one"])
    assert set(values(world.remote)) == set(document["sent"]) == set(objects(world.remote))
    assert commits(world.remote) == 1
    assert push(world.stores["one"].datastore, full=True).count == 0


def prepare_pull(world: World) -> None:
    """A cache that is empty, and a remote that is not."""
    other = world.open("other")
    scribble(other, world.file_bytes)
    push(other.datastore, full=True)
    world.open()


def check_pull(world: World, spark: Any, document: dict[str, Any]) -> None:
    """Every file came, nothing is left of attempts that did not count, and the remote was only read."""
    one = world.stores["one"]
    assert files_of(one) == files_of(world.stores["other"])
    assert len(document["brought"]) == FILES
    assert temporaries(one.datastore.base) == []
    assert commits(world.remote) == 1
    assert pull(one.datastore, full=True).count == 0


# --- migrate


def prepare_migrate(world: World) -> None:
    """A store with versions and files, and an empty one."""
    store = world.open()
    fill(store)
    scribble(store, world.file_bytes)
    push(store.datastore, full=True)
    (world.made / "two").mkdir()
    world.before = objects(world.remote), index_of(world.remote)


def check_migrate(world: World, spark: Any, document: dict[str, Any]) -> None:
    """The target has and lists what the source has and lists, by one commit; the source is as it was."""
    two = world.made / "two"
    assert (objects(world.remote), index_of(world.remote)) == world.before
    assert (objects(two), values(two)) == (world.before[0], world.before[1][1])
    assert commits(two) == 1
    assert temporaries(two) == []


def check_migrate_directory(world: World, spark: Any, document: dict[str, Any]) -> None:
    """The directory has its name and everything in it, and nothing of how it came there."""
    assert (objects(world.remote), index_of(world.remote)) == world.before
    assert objects(world.made / "final") == world.before[0]
    assert sorted(path.name for path in (world.made / "final").iterdir()) == ["data", "logs"]
    assert not (world.made / "final.mire-migrating").exists()


# --- the index and the catalog


def prepare_rebuild(world: World) -> None:
    """An index with a shard lost, one garbled, and a path of that which has no object."""
    fill(world.open())
    world.before = index_of(world.remote)
    (world.remote / STATE / "1/raw").unlink()
    (world.remote / "_index/data--aws--ec2--vpc--vpc-1.json").write_text("{")
    (world.remote / "_index/data--echo--e.json").unlink()


def check_rebuild(world: World, spark: Any, document: dict[str, Any]) -> None:
    """The index says again what it said, above every commit that was."""
    seq, entries = world.before
    assert values(world.remote) == entries
    assert commits(world.remote) == document["commitSeq"] > seq
    assert (document["gone"], document["differing"]) == (1, 0)


def prepare_catalog(world: World) -> None:
    """A store in a directory, and its catalog."""
    store = world.open_plain()
    fill(store)
    world.before = answers(store)
    with opened(store.datastore) as catalog:
        set_meta(catalog, PLANTED, "by hand")


def rows_of_catalog(world: World) -> tuple[list[tuple[Any, ...]], str | None]:
    """What is in the catalog, not what a query makes of it, and what was planted in it."""
    with opened(world.stores["one"].datastore) as catalog:
        rows = sorted(catalog.rows("SELECT model_id, name, version, is_latest, size FROM version"))
        return rows, meta_of(catalog, PLANTED)


def check_catalog(world: World, spark: Any, document: dict[str, Any]) -> None:
    """It is another catalog, with every version once, and answers as before."""
    assert rows_of_catalog(world) == (world.before, None)
    assert answers(world.stores["one"]) == world.before
    data = world.root / "plain/.swamp/data"
    assert {path.name for path in data.iterdir() if path.is_dir()} == {"aws", "echo"}
    assert (document["versions"], document["names"], document["errors"]) == (4, 2, [])


def prepare_others(world: World) -> None:
    """A namespace, and another one that publishes nothing any more."""
    world.open(namespace="ours").model("echo", "mine").put("note", "hello")
    fill(world.open("blue", namespace="blue"))
    (world.remote / "blue/.catalog-export.json").unlink()


def rows_of_others(world: World) -> list[tuple[Any, ...]]:
    """What queries know of other namespaces."""
    with open_imports(world.stores["one"].datastore) as catalog:
        return sorted(catalog.rows("SELECT namespace, model_id, name, version FROM version"))


def check_others(world: World, spark: Any, document: dict[str, Any]) -> None:
    """Every version of the other namespace is known, once."""
    wanted = [("blue", "e", "note", 1), *(("blue", "vpc-1", "state", number) for number in (1, 2, 3))]
    assert rows_of_others(world) == wanted
    assert [(each["outcome"], each["rows"]) for each in document["namespaces"]] == [("imported", 4)]


# --- verify and repair


def prepare_verify(world: World) -> None:
    """A store with an object gone, one cut short, and one that nobody lists."""
    fill(world.open())
    (world.remote / STATE / "1/raw").unlink()
    (world.remote / STATE / "2/raw").write_text("cut")
    (world.remote / "logs").mkdir()
    (world.remote / "logs/stray").write_text("stray")
    world.aged(world.remote)


def check_verify(world: World, spark: Any, document: dict[str, Any]) -> None:
    """Each finding is there once, in the document and in the table."""
    wanted = {
        *(("dangling", f"{STATE}/1/raw"), ("object_differs", f"{STATE}/2/raw"), ("orphan", "logs/stray")),
        *((("checksum", f"{STATE}/2/raw"),) if document["read"] else ()),
    }
    found = [(each["kind"], each["path"]) for each in document["findings"]]
    assert sorted(found) == sorted(wanted)
    interactive = verify(world.stores["one"].datastore, deep=True)
    assert {(each.kind, each.path) for each in interactive.findings} <= {*wanted, ("lost", f"{STATE}/1/raw")}
    table = spark.read.parquet(str(world.root / "table"))
    rows = [tuple(each[name] for name in ("kind", "path", "message")) for each in document["findings"]]
    assertDataFrameEqual(
        table.select("kind", "path", "message"),
        spark.createDataFrame(rows, "kind string, path string, message string"),
    )


def prepare_repair(world: World) -> None:
    """A store with an object gone, one damaged, and one described wrongly."""
    fill(world.open())
    world.before = values(world.remote), commits(world.remote), objects(world.remote)
    (world.remote / STATE / "1/raw").unlink()
    (world.remote / STATE / "2/raw").write_text("rotten")
    place = world.remote / "_index/data--aws--ec2--vpc--vpc-1.json"
    text = json.loads(place.read_text())
    text["entries"][f"{STATE}/3/raw"] = {"size": "many"}
    place.write_text(json.dumps(text, separators=(",", ":")))
    world.aged(world.remote)


def check_repair(world: World, spark: Any, document: dict[str, Any]) -> None:
    """Index and objects are what they were, one commit later."""
    entries, seq, stored = world.before
    assert (values(world.remote), commits(world.remote), objects(world.remote)) == (entries, seq + 1, stored)
    assert document["left"] == 0
    assert not verify(world.stores["one"].datastore, deep=True).is_damaged


# --- retention and export


def prepare_retain(world: World) -> None:
    """Names with more versions than their policy keeps."""
    store = world.open_plain()
    for model in ("a", "b"):
        for number in range(3):
            store.model("echo", model).put("state", f"{number}", version_policy=2)


def check_retain(world: World, spark: Any, document: dict[str, Any]) -> None:
    """The first versions are gone, the others are there."""
    assert versions_of(world.stores["one"]) == [(model, "state", number) for model in "ab" for number in (2, 3)]
    assert document["versionsRemoved"] == 2


def prepare_export(world: World) -> None:
    """A few versions, of which one lost its content."""
    fill(world.open())
    (world.remote / STATE / "2/raw").unlink()


def exported(world: World) -> list[str]:
    """The commits that are part of an export."""
    root = world.made / "out/versions"
    return sorted(os.listdir(root)) if root.exists() else []


def check_export(world: World, spark: Any, document: dict[str, Any]) -> None:
    """Every version is a row, once, damaged or not, and one commit was added."""
    assert exported(world) == [f"commit={document['commit']}"]
    assert (document["versions"], document["failed"]) == (3, 1)
    rows = [
        *(("vpc-1", "state", number, f'{{"n": {number - 1}}}', False) for number in (1, 3)),
        ("vpc-1", "state", 2, None, True),
        ("e", "note", 1, None, False),
    ]
    found = read_export(spark, str(world.made / "out"))
    assertDataFrameEqual(
        found.selectExpr("model_id", "name", "version", "attributes", "_error is not null failed"),
        spark.createDataFrame(rows, "model_id string, name string, version long, attributes string, failed boolean"),
    )
    assert [name for name in os.listdir(world.made / "out") if name.startswith(".mire-export-")] == []


def _on(*arguments: str) -> Callable[[World], list[str]]:
    return lambda world: [*arguments, "--repo", world.repo]


def _migrate(target: str) -> Callable[[World], list[str]]:
    return lambda world: [
        *("migrate", f"cached:{world.remote}", target.format(root=world.made), "--index", "sharded", "--pipeline"),
    ]


def _verify(*options: str) -> Callable[[World], list[str]]:
    return lambda world: ["verify", "--pipeline", *options, "--table", str(world.root / "table"), "--repo", world.repo]


JOBS: tuple[Job, ...] = (
    Job(
        name="push",
        module="carrier",
        stage="MOVED",
        prepare=prepare_push,
        arguments=_on("push", "--all", "--pipeline"),
        visible=lambda world: index_of(world.remote),
        check=check_push,
        commit=("mire.flow.push", "commit"),
        leaves=True,
    ),
    Job(
        name="pull",
        module="carrier",
        stage="MOVED",
        prepare=prepare_pull,
        arguments=_on("pull", "--all", "--pipeline"),
        visible=lambda world: files_of(world.stores["one"]),
        check=check_pull,
        commit=("mire.flow.apply", "_put_in_place"),
    ),
    Job(
        name="migrate",
        module="round_spark",
        stage="MOVED",
        prepare=prepare_migrate,
        arguments=_migrate("cached:{root}/two"),
        visible=lambda world: index_of(world.made / "two"),
        check=check_migrate,
        commit=("mire.pipeline.jobs.migrate", "commit"),
        leaves=True,
    ),
    Job(
        name="migrate into a directory",
        module="round_spark",
        stage="MOVED",
        prepare=prepare_migrate,
        arguments=_migrate("file://{root}/final"),
        visible=lambda world: (world.made / "final").exists(),
        check=check_migrate_directory,
        commit=("mire.pipeline.jobs.migrate", "_show"),
        leaves=True,
        is_cancelled=True,
    ),
    Job(
        name="index rebuild",
        module="jobs.rebuild",
        stage="INSPECTED",
        prepare=prepare_rebuild,
        arguments=_on("index", "rebuild"),
        visible=lambda world: {path.name: path.read_bytes() for path in (world.remote / "_index").iterdir()},
        check=check_rebuild,
        # A shard counts as soon as it is written.
        commit=("mire.flow.reindex", "write_shards"),
        differs=("dryRun", "commitSeq"),
    ),
    Job(
        name="catalog rebuild",
        module="jobs.catalog",
        stage="SCANS",
        prepare=prepare_catalog,
        arguments=_on("catalog", "rebuild", "--pipeline"),
        visible=rows_of_catalog,
        check=check_catalog,
        commit=("mire.flow.catalog", "_discard"),
    ),
    Job(
        name="catalog rebuild of all namespaces",
        module="jobs.others",
        stage="SHOWN",
        prepare=prepare_others,
        arguments=_on("catalog", "rebuild", "--pipeline", "--all-namespaces"),
        visible=rows_of_others,
        check=check_others,
        commit=("mire.pipeline.jobs.others", "replace_imports"),
    ),
    Job(
        name="verify",
        module="jobs.verify",
        stage="OBJECTS",
        prepare=prepare_verify,
        arguments=_verify(),
        visible=lambda world: (objects(world.remote), index_of(world.remote)),
        check=check_verify,
        code=7,
        has_dry_run=False,
    ),
    Job(
        name="verify --deep",
        module="jobs.verify",
        stage="INSPECTED",
        slow="FINDINGS",
        prepare=prepare_verify,
        arguments=_verify("--deep"),
        visible=lambda world: (objects(world.remote), index_of(world.remote)),
        check=check_verify,
        code=7,
        has_dry_run=False,
    ),
    Job(
        name="repair",
        module="jobs.repair",
        stage="INSPECTED",
        slow="FINDINGS",
        prepare=prepare_repair,
        arguments=_on("repair"),
        visible=lambda world: index_of(world.remote),
        check=check_repair,
        commit=("mire.pipeline.jobs.repair", "commit"),
    ),
    Job(
        name="retain",
        module="jobs.retain",
        stage="RETENTION",
        prepare=prepare_retain,
        arguments=_on("retain", "--pipeline"),
        visible=lambda world: versions_of(world.stores["one"]),
        check=check_retain,
        commit=("mire.pipeline.jobs.retain", "carry_out"),
    ),
    Job(
        name="export",
        module="jobs.export",
        stage="PARSED",
        prepare=prepare_export,
        arguments=lambda world: ["export", str(world.made / "out"), "--repo", world.repo],
        visible=exported,
        check=check_export,
        commit=("mire.pipeline.jobs.export", "publish"),
    ),
)


def each_job(jobs: Iterable[Job] = JOBS) -> Any:
    """A test for every job."""
    return pytest.mark.parametrize("job", jobs, ids=lambda job: job.name.replace(" ", "_"))
