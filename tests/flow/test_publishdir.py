"""In a shared directory the catalog of a namespace follows its writes, as far as that is affordable."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge import files
from mire.errors import ConfigError
from mire.flow import publishdir
from mire.flow.catalog import meta_of, opened, set_meta
from mire.flow.publishdir import Shown, publish_directory
from mire.flow.publishnow import is_waiting, publish_now, unpublish_now
from mire.plan import publish
from mire.wire.export import EXPORT, EXPORT_COLUMNS
from sharing_world import Tenant, Tenants


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is, publishing is cheap."""
    monkeypatch.setattr(publish, "CHEAP_MS", float("inf"))


@pytest.fixture
def tenants(fast_path: Path) -> Iterator[Tenants]:
    """A shared directory."""
    made = Tenants(fast_path, None)
    yield made
    made.close()


@pytest.fixture
def infra(tenants: Tenants) -> Tenant:
    """A namespace in it."""
    return tenants.tenant("infra")


def published(tenants: Tenants) -> list[tuple[str, str, int]]:
    """Models, names and versions that others can see."""
    rows = json.loads(tenants.published("infra"))
    return sorted((row["model_id"], row["data_name"], row["version"]) for row in rows)


def cost(tenant: Tenant, cost_ms: float, age_ms: float) -> None:
    """Let the last publication have cost so much, so long ago."""
    with opened(tenant.ds) as catalog, catalog.transaction():
        set_meta(catalog, "publish_cost_ms", str(cost_ms))
        at = float(meta_of(catalog, "published_ms") or 0)
        set_meta(catalog, "published_ms", str(at - age_ms))


def test_every_write_is_published_in_the_reference_s_shape(tenants: Tenants, infra: Tenant) -> None:
    """Put, append, rename, delete, a deletion marker and retention; the file is spelled as at a remote."""
    router = infra.router("r")
    router.put("state", {"n": 1})
    text = tenants.published("infra")
    assert text == (json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n").encode()
    assert list(json.loads(text)[0]) == list(EXPORT_COLUMNS)
    router.put("state", {"n": 2}, version_policy=1)
    router.put("log", "a", streaming=True)
    assert published(tenants) == [("r", "log", 1), ("r", "state", 1), ("r", "state", 2)]
    router.append("log", "b")
    assert [row["size"] for row in json.loads(tenants.published("infra")) if row["data_name"] == "log"] == [2]
    infra.store.retain()
    router.rename("log", "journal")
    assert published(tenants) == [("r", "journal", 1), ("r", "state", 2)]
    router.mark_deleted("journal")
    router.delete("state")
    assert published(tenants) == []
    assert tenants.published("infra") == b"[]\n"


def test_a_block_that_holds_a_model_is_published_once(
    infra: Tenant, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its end, not after each write in it; records of runs and the like are no reason at all."""
    done: list[Any] = []
    real = publishdir.publish_directory

    def counted(*arguments: Any, **options: Any) -> Shown:
        done.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(publishdir, "publish_directory", counted)
    router = infra.router("r")
    with router.hold():
        for number in range(5):
            router.put("state", {"n": number})
        assert done == []
    assert done == [1]
    assert len(published(tenants)) == 5


def test_a_write_that_changes_no_row_leaves_the_file_alone(tenants: Tenants, infra: Tenant) -> None:
    """Its time stays, and readers that know it are not made to read it again."""
    infra.router("r").put("state", {"n": 1})
    before = (tenants.share / "infra" / EXPORT).stat()
    with infra.router("r").hold():
        pass
    assert publish_directory(infra.ds) == Shown(rows=1, is_changed=False)
    after = (tenants.share / "infra" / EXPORT).stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_what_has_become_costly_is_published_now_and_then(
    tenants: Tenants, infra: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A twentieth of the time at most; asking for it publishes at once."""
    monkeypatch.setattr(publish, "CHEAP_MS", 50.0)
    publish_now(infra.ds)
    infra.router("r").put("state", {"n": 1})
    publish_now(infra.ds)
    cost(infra, 1_000_000, 5000)
    infra.router("r").put("state", {"n": 2})
    assert published(tenants) == [("r", "state", 1)]
    assert is_waiting(infra.ds) is True
    assert publish_now(infra.ds) == Shown(rows=2, is_changed=True)
    assert is_waiting(infra.ds) is False
    cost(infra, 1_000_000, 20_000_000)
    infra.router("r").put("state", {"n": 3})
    assert len(published(tenants)) == 3


def test_a_large_store_that_nobody_read_is_not_read_because_of_a_write(
    infra: Tenant, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Building a catalog of everything is left to a query, or to who asks for it."""
    monkeypatch.setattr(publishdir, "_SMALL_ENTRIES", 3)
    infra.router("r").put("state", {"n": 1})
    assert not (tenants.share / "infra" / EXPORT).exists()
    infra.query("true")
    infra.router("r").put("state", {"n": 2})
    assert len(published(tenants)) == 2


def test_repositories_of_one_namespace_publish_each_others_writes(tenants: Tenants, infra: Tenant) -> None:
    """What is published is what the files say, whoever wrote them, also when they write at the same time."""
    other = tenants.tenant("infra")
    infra.router("a").put("state", {"n": 1})
    other.router("b").put("state", {"n": 1})
    assert published(tenants) == [("a", "state", 1), ("b", "state", 1)]

    def write(tenant: Tenant, model: str) -> None:
        for number in range(5):
            tenant.router(model).put("state", {"n": number})

    threads = [threading.Thread(target=write, args=each) for each in ((infra, "c"), (other, "d"))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(published(tenants)) == 12


def test_a_failure_to_publish_is_none_of_the_write(
    infra: Tenant, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is there; the next write makes up for it; nothing half-written is left."""
    infra.router("r").put("state", {"n": 1})
    real: Callable[[str, str], None] = files.move_file

    def fail(source: str, path: str) -> None:
        if path.endswith(EXPORT):
            raise OSError(28, "no space")
        real(source, path)

    monkeypatch.setattr(files, "move_file", fail)
    assert infra.router("r").put("state", {"n": 2}).version == 2
    assert published(tenants) == [("r", "state", 1)]
    monkeypatch.undo()
    infra.router("r").put("state", {"n": 3})
    assert len(published(tenants)) == 3
    assert [name for name in os.listdir(tenants.share / "infra") if name.endswith(".tmp")] == []


def test_publication_can_be_turned_off(tenants: Tenants) -> None:
    """Then nothing is written, and asking for it says where that was said; so without a namespace."""
    quiet, solo = tenants.tenant("quiet", publishing=False), tenants.tenant("")
    for each, why in ((quiet, "publishCatalog: false"), (solo, "namespace set")):
        each.router("r").put("state", {"n": 1})
        with pytest.raises(ConfigError, match=why):
            publish_now(each.ds)
    assert list(tenants.share.rglob(EXPORT)) == []


def test_what_was_published_is_withdrawn_when_it_is_turned_off(tenants: Tenants, infra: Tenant) -> None:
    """Not before, since the next write would show it again."""
    infra.router("r").put("state", {"n": 1})
    with pytest.raises(mire.ConflictError, match="publishCatalog: false"):
        unpublish_now(infra.ds)
    assert published(tenants) == [("r", "state", 1)]
    quiet = replace(infra.ds, config=replace(infra.ds.config, publishes_catalog=False))
    assert is_waiting(quiet) is None
    assert unpublish_now(quiet)
    assert not unpublish_now(quiet)
    assert list(tenants.share.rglob(EXPORT)) == []
    assert infra.query("true") == [("infra", "r", 1)]


@pytest.mark.parametrize("value", ["no", "0", "[]"])
def test_a_setting_that_is_neither_true_nor_false_is_refused(tenants: Tenants, value: str) -> None:
    """It is shown."""
    path = tenants.repository("infra")
    with (path / ".swamp.yaml").open("a") as file:
        file.write(f"  publishCatalog: {value}\n")
    with pytest.raises(ConfigError, match="publishCatalog is"):
        mire.open(path)
