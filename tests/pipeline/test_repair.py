"""Repairing a store: what can be put right is, once, and the rest is left with a reason."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.pipeline.jobs.repair import Repaired, repair_store

STATE = "data/aws/ec2/vpc/vpc-1/state"
OTHER = "data/aws/ec2/vpc/vpc-2/state"


def actions(done: Repaired) -> dict[str, str]:
    """What was done about each path."""
    return {each.path: each.remedy.action for each in done.repairs}


def damage(store: mire.Store, remote: Path, index: str) -> None:
    """A store with something gone, something damaged, something described wrongly, and something stray."""
    for number in range(3):
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
