"""Repairing a store: what can be put right is, once, and the rest is left with a reason."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from job_table import files_of, objects, values
from mire.flow.mark import mark_all
from mire.flow.place import META, MONOLITH
from mire.flow.pull import pull
from mire.flow.push import push
from mire.flow.repair import repair
from mire.model.index import Meta
from mire.pipeline.jobs.rebuild import rebuild_index
from mire.pipeline.jobs.repair import Repair, Repaired, lost_paths, repair_store
from mire.pipeline.view import IndexView
from mire.plan.repair import REBUILD, Remedy

STATE = "data/aws/ec2/vpc/vpc-1/state"
OTHER = "data/aws/ec2/vpc/vpc-2/state"


def actions(done: Repaired) -> dict[str, str]:
    """What was done about each path."""
    return {each.path: each.remedy.action for each in done.repairs}


def damage(store: mire.Store, remote: Path, index: str) -> None:
    """A store with something gone, something damaged, something described wrongly, and something stray."""
    for number in range(4):
        store.model("aws/ec2/vpc", "vpc-1").put("state", f'{{"n": {number}}}', content_type="application/json")
    store.model("aws/ec2/vpc", "vpc-2").put("state", "two")
    store.model("echo", "e").put("note", "twin")
    (remote / STATE / "1/raw").unlink()
    (remote / STATE / "2/raw").write_text("rotten")
    (remote / OTHER / "1/raw").unlink()
    os.unlink(os.path.join(store.datastore.tier, OTHER, "1/raw"))
    (remote / "logs").mkdir()
    (remote / "logs/stray").write_text("stray")
    (remote / "logs/twin").write_text("twin")
    place = remote / ("_index/data--aws--ec2--vpc--vpc-1.json" if index == "sharded" else ".datastore-index.json")
    text = json.loads(place.read_text())
    text["entries"][f"{STATE}/3/raw"] = {"size": "many"}
    text["entries"][f"{STATE}/4/raw"]["sha256"] = "0" * 64
    place.write_text(json.dumps(text, separators=(",", ":")))


@pytest.mark.parametrize("index", ["sharded", "dual"])
def test_what_can_be_put_right_is(
    spark: Any,
    synced: Callable[..., mire.Store],
    tmp_path: Path,
    aged: Callable[[Path], None],
    snapshot: Callable[[Path], Any],
    index: str,
) -> None:
    """A dry run says what the run then does; afterwards only what nobody can heal is left; again changes nothing."""
    store, remote = synced(index=index), tmp_path / "remote"
    damage(store, remote, index)
    aged(remote)
    before = snapshot(remote)
    planned = repair_store(spark, store.datastore, orphans="delete", dry_run=True) if index == "sharded" else None
    assert snapshot(remote) == before
    done = repair_store(spark, store.datastore, orphans="delete")
    assert planned is None or actions(done) == actions(planned)
    wanted = {
        f"{STATE}/1/raw": "restore",
        f"{STATE}/2/raw": "restore",
        f"{STATE}/3/raw": "reindex",
        f"{STATE}/4/raw": "reindex",
        f"{OTHER}/1/raw": "leave",
        "logs/stray": "leave",
        "logs/twin": "delete",
    }
    assert {path: action for path, action in actions(done).items() if path in wanted} == wanted
    assert (remote / STATE / "2/raw").read_text() == '{"n": 1}'
    kept = [path.read_text() for path in Path(store.datastore.base, "_index").rglob("raw")]
    assert kept == ["rotten"]
    after = snapshot(remote)
    left = actions(repair_store(spark, store.datastore))
    assert {path: action for path, action in left.items() if not path.startswith("data--")} == {
        f"{OTHER}/1/raw": "leave",
        "logs/stray": "leave",
    }
    assert {key: value for key, value in snapshot(remote).items() if "lock" not in key} == {
        key: value for key, value in after.items() if "lock" not in key
    }


def publish(store: mire.Store, files: dict[str, str]) -> None:
    """Files that are no versions, pushed."""
    for rel, text in files.items():
        path = Path(store.datastore.tier, rel)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    mark_all(store.datastore)
    push(store.datastore, full=True)


def pull_all(*stores: mire.Store) -> list[dict[str, bytes]]:
    """What each cache has after it pulled everything."""
    for store in stores:
        pull(store.datastore, full=True)
    return [files_of(store) for store in stores]


def unlist(remote: Path, partition: str, *rels: str) -> None:
    """What a program does that writes an index without looking: paths are dropped, and it counts as a commit."""
    shard, meta = remote / f"_index/{partition}.json", remote / "_index/_meta.json"
    text, listed = json.loads(shard.read_text()), json.loads(meta.read_text())
    for rel in rels:
        del text["entries"][rel]
    listed["commitSeq"] += 1
    shard.write_text(json.dumps(text, separators=(",", ":")))
    meta.write_text(json.dumps(listed, separators=(",", ":")))


def test_no_cache_loses_anything_by_a_repair(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, aged: Callable[[Path], None]
) -> None:
    """Whoever repairs, with or without copies, and whoever pulls then: good copies stay, and heal the store.

    A rotten object is never declared right nor taken for a copy of another; what the index dropped is not deleted
    because a cache, which follows the index, still has it; an entry goes only where no version of it is here.
    """
    one, remote = synced(), tmp_path / "remote"
    one.model("echo", "e").put("note", "hello")
    names = ("rotten", "cut", "twin", "dropped", "older", "void")
    publish(one, {f"logs/{name}": name for name in names})
    other, new = synced("other"), synced("new")
    pull_all(other)
    publish(other, {"logs/older": "newer"})
    for store in (one, other):
        Path(store.datastore.tier, "logs/void").unlink()
    listed, had = values(remote), files_of(other)
    stale = {**had, "logs/older": b"older"}
    for name, text in {"rotten": "evil!!", "cut": "", "twin": "tw!n", "orphan": "twin"}.items():
        (remote / "logs" / name).write_text(text)
    (remote / "data/echo/e/note/latest").write_text("7")
    for name in ("older", "void"):
        (remote / "logs" / name).unlink()
    unlist(remote, "logs", "logs/dropped")
    aged(remote)

    done = repair_store(spark, new.datastore, orphans="delete")
    wrong = ("logs/rotten", "logs/cut", "logs/twin", "data/echo/e/note/latest")
    left = ("logs/older", "logs/orphan")
    assert actions(done) == dict.fromkeys((*wrong, *left, "logs/dropped", "logs/void"), "leave")
    assert pull_all(one, other) == [stale, had]

    done = repair_store(spark, one.datastore, orphans="delete", drop=True)
    assert actions(done) == {
        **dict.fromkeys(wrong, "restore"),
        **dict.fromkeys(left, "leave"),
        "logs/dropped": "adopt",
        "logs/void": "drop",
    }
    listed.pop("logs/void")
    assert values(remote) == listed
    assert pull_all(one, other) == [stale, had]
    assert repair(other.datastore).stored == ["logs/older"]
    assert pull_all(one, other, new) == [had, had, had]
    assert objects(remote) == {**had, "logs/orphan": b"twin"}


def test_what_lost_shards_listed_is_left_to_a_rebuild(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, aged: Callable[[Path], None]
) -> None:
    """A shard that is gone or garbled is no error, and no empty one: the rest is repaired, and a rebuild has all.

    It lists also what has no object any more, so that no cache loses its copy of that.
    """
    one, remote = synced(), tmp_path / "remote"
    one.model("echo", "e").put("note", "hello")
    one.model("echo", "f").put("note", "world")
    publish(one, {"logs/gone": "good"})
    other = synced("other")
    [had] = pull_all(other)
    listed, raw = values(remote), "data/echo/e/note/1/raw"
    for rel in ("logs/gone", raw, "_index/data--echo--f.json"):
        (remote / rel).unlink()
    (remote / "_index/data--echo--e.json").write_text("{")
    aged(remote)

    done = repair_store(spark, one.datastore, orphans="delete", drop=True)
    found = {each.path: each.remedy for each in done.repairs}
    assert found.pop("logs/gone").action == "restore"
    assert {"data--echo--e", "data--echo--f", "data/echo/f/note/1/raw"} <= found.keys()
    assert all(remedy.action == "leave" and remedy.reason.endswith(REBUILD) for remedy in found.values())
    assert not (remote / "_index/data--echo--f.json").exists()
    assert pull_all(one, other) == [had, had]

    assert rebuild_index(spark, one.datastore).gone == 1
    assert values(remote) == listed
    assert pull_all(one, other) == [had, had]
    assert repair(other.datastore).stored == [raw]
    assert objects(remote) == had


SHARDED = IndexView(meta=Meta(version=2, partitions=("logs", "files")), shards={"logs": "t"})


@pytest.mark.parametrize(
    ("view", "kinds", "lost"),
    [
        (SHARDED, {}, set()),
        (SHARDED, {"files": "shard_missing"}, {"files/a"}),
        (SHARDED, {"logs": "shard_unreadable"}, {"logs/a"}),
        (SHARDED, {"logs": "shard_unlisted"}, set()),
        (IndexView(meta=None, monolith_tag="t"), {}, set()),
        (IndexView(meta=None, monolith_tag="t"), {MONOLITH: "shard_unreadable"}, {"logs/a", "files/a"}),
        (IndexView(meta=Meta(version=1), monolith_tag="t"), {META: "list_unreadable"}, {"logs/a", "files/a"}),
        (IndexView(meta=None, monolith_tag="t", shards={"logs": "t"}), {}, {"logs/a", "files/a"}),
        (IndexView(meta=Meta(version=1, partitions=("logs",))), {}, {"logs/a", "files/a"}),
        (IndexView(meta=None), {}, {"logs/a", "files/a"}),
    ],
)
def test_of_which_paths_the_index_is_lost(view: IndexView, kinds: dict[str, str], lost: set[str]) -> None:
    """Of those of a shard that cannot be read, and of all where it is not known what counts."""
    leave = Remedy(action="leave", reason="it is found")
    is_lost = lost_paths(view, [Repair(path=path, kind=kind, remedy=leave) for path, kind in kinds.items()])
    assert {rel for rel in ("logs/a", "files/a") if is_lost(rel)} == lost


def test_repair_and_verify_on_the_command_line(
    run: Callable[..., tuple[int, str, str]],
    synced: Callable[..., mire.Store],
    tmp_path: Path,
    aged: Callable[[Path], None],
) -> None:
    """Verify exits 7 and names the damage, repair shows each remedy with its reason, then verify finds nothing."""
    store, remote = synced(), tmp_path / "remote"
    store.model("echo", "e").put("note", "hello")
    (remote / "data/echo/e/note/1/raw").unlink()
    aged(remote)
    repo = store.datastore.repo_dir
    code, out, _ = run("verify", "--pipeline", "--repo", repo)
    assert code == 7
    assert "DAMAGED: 'data/echo/e/note/1/raw' is in the index, but its object is not there" in out
    code, out, err = run("repair", "--repo", repo, "--json")
    assert (code, err) == (0, "")
    assert [(each["path"], each["action"]) for each in json.loads(out)["repairs"]] == [
        ("data/echo/e/note/1/raw", "restore")
    ]
    code, out, _ = run("verify", "--pipeline", "--repo", repo, "--table", str(tmp_path / "table"))
    assert code == 0
    assert "nothing is damaged" in out
    assert (tmp_path / "table/_SUCCESS").exists()
    code, _, err = run("verify", "--table", "x", "--repo", repo)
    assert (code, "--table and --master go with --pipeline" in err) == (2, True)
