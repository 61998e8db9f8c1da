"""A round of a migration: on Spark and in this process the same is decided."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.errors import ConflictError
from mire.model.backend import S3Settings
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.pipeline.frames import ENTRIES, frame_of
from mire.pipeline.round_here import _is_done, has_more, round_here
from mire.pipeline.round_spark import _fresh, round_on_spark
from mire.pipeline.rounds import OpenRound
from mire.pipeline.sides import Side, open_source, open_target
from mire.pipeline.store import StoreSpec
from mire.testing.s3server import S3Server
from sparks import ACCESS


def world(root: Path, seed: int) -> tuple[Side, Side]:
    """Two stores with a bit of everything between them, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    one, two = root / "remote", root / f"two-{seed}"
    said = json.loads((one / ".datastore-index.json").read_text())
    theirs: dict[str, Any] = {}
    for rel, entry in said["entries"].items():
        match chance.choice(["nothing", "same", "same", "rotten", "other", "unknown"]):
            case "same":
                put(two / rel, (one / rel).read_bytes())
            case "rotten":
                put(two / rel, b"x" * entry["size"])
            case "other":
                put(two / rel, b"something else")
            case "unknown":
                entry.pop("sha256")
        if chance.random() < seed % 3 / 3:
            theirs[rel] = differing(entry, chance.choice(["same"] * 12 + ["unknown", "larger", "hash"]))
    said["entries"]["team/data/echo/e/note/1/raw"] = dict(entry)
    source = root / f"one-{seed}"
    shutil.copytree(one, source)
    put(source / ".datastore-index.json", json.dumps(said).encode())
    put(two / ".datastore-index.json", json.dumps({**said, "entries": theirs}).encode())
    for left in (source, two):
        shutil.rmtree(left / "_index", ignore_errors=True)
    at = str(root)
    target = open_target(f"cached:{two}", namespace="", index="dual", repo_dir=at, dry_run=True)
    return open_source(f"cached:{source}", namespace="", repo_dir=at), target


def differing(entry: dict[str, Any], how: str) -> dict[str, Any]:
    """What the target's own index says of an object."""
    match how:
        case "unknown":
            return {name: value for name, value in entry.items() if name != "sha256"}
        case "larger":
            return {**entry, "size": entry["size"] + 1}
        case "hash":
            return {**entry, "sha256": "0" * 64}
        case _:
            return dict(entry)


def put(path: Path, data: bytes) -> None:
    """A file where there may be no directory yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def told(open_round: OpenRound, source: Side, target: Side) -> Any:
    """What a round finds, and would do; an error without its example."""
    try:
        with open_round() as a_round:
            looked = a_round.look(source.spec)
            rows = list(a_round.copies({}, target, is_new=False, dry_run=True))
            return looked, a_round.rels(), sorted(rows, key=lambda row: str(row["rel"]))
    except ConflictError as error:
        return error.kind, error.message.split("for example")[0]


def test_both_ways_decide_the_same(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Random targets that have some of it, other bytes, or lists of their own: on Spark and here it is one decision."""
    store = synced(index="dual")
    for number in range(8):
        store.model("echo", f"e-{number}").put("note", f"{number}")
    outcomes = set()
    for seed in range(12):
        source, target = world(tmp_path, seed)
        here = told(round_here, source, target)
        assert here == told(lambda: round_on_spark(spark), source, target)
        outcomes |= {here[0]} if isinstance(here[0], str) else {row["outcome"] for row in here[2]}
        outcomes |= set() if isinstance(here[0], str) else {row["error_kind"] for row in here[2]}
    assert outcomes == {"copied", "there", "left_out", "target_in_use", None}


def test_without_a_hash_only_the_time_tells_that_something_is_done(spark: Any) -> None:
    """An entry of an old client that was rewritten with the same size is copied again in the next round."""
    at, later = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
    rows = [
        ("logs/same", "logs", 10, at, None, None, None, None),
        ("logs/rewritten", "logs", 10, later, None, None, None, None),
        ("logs/other", "logs", 10, at, None, "b", None, None),
        ("logs/hashed", "logs", 10, at, None, "a", None, None),
        ("logs/listed", None, 10, None, None, None, None, None),
    ]
    before = Entry(size_bytes=10, last_modified=at, sha256="a")
    found = _fresh(spark, frame_of(spark, rows, ENTRIES), {RelPath(str(row[0])): before for row in rows})
    assert {row["rel"] for row in found.collect()} == {"logs/rewritten", "logs/other", "logs/listed"}
    assert [row[0] for row in rows if _is_done(row, before)] == ["logs/same", "logs/hashed"]
    assert not _is_done(rows[0], None)


def test_no_more_is_read_than_it_takes_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is enough for Spark is told without reading an index to its end."""
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    with S3Server(buckets=["bucket"]) as server:
        shards = [f"logs--{number:03}" for number in range(200)]
        for name in shards:
            entry = {"key": f"logs/{name[6:]}", "size": 1, "lastModified": "2026-01-01T00:00:00.000Z"}
            body = {"version": 2, "partition": name, "entries": {entry["key"]: entry}}
            server.put("bucket", f"_index/{name}.json", json.dumps(body).encode())
        meta = {"version": 2, "partitions": shards, "commitSeq": 1}
        server.put("bucket", "_index/_meta.json", json.dumps(meta).encode())
        spec = StoreSpec(type="@swamp/s3-datastore", settings=S3Settings(bucket="bucket", endpoint=server.url))
        assert has_more(spec, 20)
        read = [entry for entry in server.log() if entry.operation == "GetObject" and "logs--" in entry.key]
        assert len(read) < 150
        assert has_more(spec, 199)
        assert not has_more(spec, 200)
