"""Tenants of one store never touch one another, whatever each of them does."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mire
from mire.edge.memory import MemoryRemote
from mire.edge.remote import Absent
from mire.flow.backend import new_probe_key
from mire.flow.cachestatus import look_at_cache, look_at_remote
from mire.flow.contamination import examine_namespace
from mire.flow.exchange import bring, not_here, pull_now, push_now
from mire.flow.fence import fenced
from mire.flow.lock import hold_global, inspect_locks
from mire.flow.mark import mark_all
from mire.flow.migrate import migrate_index
from mire.flow.namespace import show_namespace
from mire.flow.publishnow import publish_now, unpublish_now
from mire.flow.repair import repair
from mire.flow.sync import refresh_older
from mire.flow.verify import verify
from mire.model.config import Config, Extension
from mire.model.names import Namespace
from mire.wire.layout import global_locks
from sync_world import Recorded, data
from tenants import Tenant, is_within

NAMES = ("team-a", "team-b", "")
Act = Callable[[mire.Store], object]


def _hold(store: mire.Store) -> None:
    with hold_global(store.datastore):
        pass


def _publish(store: mire.Store) -> None:
    if store.namespace:
        publish_now(store.datastore)
    else:
        push_now(store.datastore, full=True)


def _unpublish(store: mire.Store) -> None:
    ds = store.datastore
    if store.namespace:
        unpublish_now(replace(ds, config=replace(ds.config, publishes_catalog=False)))


ACTS: dict[str, Act] = {
    "put": lambda store: store.model("aws/ec2/vpc", "m").put("state", "more"),
    "put other": lambda store: store.model("svc", "m").put("log", "x", version_policy=1),
    "rename": lambda store: store.model("svc", "m").rename("log", "journal"),
    "delete": lambda store: store.model("aws/ec2/vpc", "m").delete("state"),
    "get": lambda store: store.model("aws/ec2/vpc", "m").get("state").text(),
    "query": lambda store: list(store.query("modelType == 'svc' || attributes.a == 1")),
    "retain": lambda store: store.retain(),
    "hold": _hold,
    "locks": lambda store: inspect_locks(store.datastore),
    "push": lambda store: push_now(store.datastore),
    "push all": lambda store: (mark_all(store.datastore), push_now(store.datastore)),
    "push walk": lambda store: push_now(store.datastore, full=True),
    "pull": lambda store: pull_now(store.datastore),
    "pull all": lambda store: pull_now(store.datastore, full=True),
    "pull one": lambda store: pull_now(store.datastore, models=[store.model("svc", "m").ref]),
    "hydrate": lambda store: bring(store.datastore, [rel for rel, _ in not_here(store.datastore)]),
    "refresh": lambda store: refresh_older(store.datastore, 0),
    "verify": lambda store: verify(store.datastore, deep=True),
    "index": lambda store: migrate_index(store.datastore),
    "doctor": lambda store: examine_namespace(store.datastore),
    "repair": lambda store: examine_namespace(store.datastore, repair=True),
    "append": lambda store: store.model("svc", "m").append("lines", b"x\n"),
    "mark deleted": lambda store: store.model("svc", "m").mark_deleted("lines"),
    "prune": lambda store: store.prune(),
    "status": lambda store: (look_at_cache(store.datastore), look_at_remote(store.datastore)),
    "verify and repair": lambda store: repair(store.datastore),
    "publish": _publish,
    "unpublish": _unpublish,
    "show": lambda store: show_namespace(store.datastore.repo_dir),
}


IDLE = ("get", "query", "push", "push walk", "hydrate", "prune", "unpublish", "show")
"""Acts that may have nothing to ask."""


@pytest.fixture
def tenants(fast_path: Path) -> dict[str, Tenant]:
    """Two repositories in namespaces and one without, with data under equal names; the store remembers requests."""
    remote = Recorded(MemoryRemote())
    found = {}
    for name in NAMES:
        tenant = found[name] = Tenant(fast_path / (name or "solo"), remote)
        if name:
            tenant.take(name)
        tenant.put("m", f"of {name or 'solo'}")
    return found


def test_no_sequence_of_commands_leaves_its_own_part(tenants: dict[str, Tenant]) -> None:
    """Not a key of another tenant is read, listed, written or deleted, by nobody, in no order."""
    remote = tenants[""].remote
    assert isinstance(remote, Recorded)
    step = st.tuples(st.sampled_from(NAMES), st.sampled_from(sorted(ACTS)))

    @settings(max_examples=12)
    @given(steps=st.lists(step, min_size=1, max_size=8))
    def check(steps: list[tuple[str, str]]) -> None:
        for name, act in steps:
            remote.take()
            with tenants[name].open() as store:
                try:
                    ACTS[act](store)
                except mire.InternalError:  # the fence: something was about to leave
                    raise
                except mire.MireError:
                    pass
            for operation, key in remote.take():
                assert is_within(operation, key, name, NAMES[:2]), f"{name or 'solo'}: {act}: {operation} of {key!r}"

    check()


@pytest.mark.parametrize("namespace", [*NAMES])
def test_the_fence_lets_nothing_out(namespace: str) -> None:
    """Whatever is asked of a key outside a tenant's part is refused before it is sent."""
    inside = Recorded(MemoryRemote())
    config = Config(target=Extension(type="any"), origin="test", namespace=Namespace(namespace))
    remote = fenced(inside, config)
    keys = [f"{name}/{data('m')}" if name else data("m") for name in NAMES]
    keys += [f".locks/{name}.lock" for name in NAMES[:2]]
    calls: dict[str, Callable[[str], object]] = {
        "get": remote.get,
        "head": remote.head,
        "get_stream": remote.get_stream,
        "get_if_changed": lambda key: remote.get_if_changed(key, "x"),
        "put": lambda key: remote.put(key, b""),
        "put_if": lambda key: remote.put_if(key, b"", Absent()),
        "put_stream": lambda key: remote.put_stream(key, list),
        "delete": remote.delete,
        "delete_if": lambda key: remote.delete_if(key, "x"),
        "copy": lambda key: remote.copy(keys[NAMES.index(namespace)], key),
        "list": lambda key: list(remote.list(f"{key}/")),
        "list_level": lambda key: remote.list_level(f"{key}/"),
    }
    for operation, call in calls.items():
        for key in keys:
            asked = f"{key}/" if operation.startswith("list") else key
            if is_within(operation, asked, namespace, NAMES[:2]):
                with suppress(mire.NotFoundError):
                    call(key)
                continue
            with pytest.raises(mire.InternalError, match="would leave our part"):
                call(key)
    with pytest.raises(mire.InternalError):
        remote.list_level("")
    assert all(is_within(*each, namespace, NAMES[:2]) for each in inside.take())


@pytest.mark.parametrize("namespace", NAMES)
def test_a_probe_of_conditions_is_in_our_own_part(namespace: str) -> None:
    """Whichever key raises the question: index, lock of either generation, or data."""
    prefix = f"{namespace}/" if namespace else ""
    rels = (data("m"), ".datastore-index.json", "_index/_meta.json", ".datastore.lock", ".catalog-export.json")
    for key in (*(f"{prefix}{rel}" for rel in rels), *global_locks(Namespace(namespace))):
        probe = new_probe_key(key)
        assert probe.startswith(f"{prefix}_control/conditional-write-probe-"), key


@pytest.mark.parametrize("name", NAMES)
def test_every_command_stays_in_its_part(tenants: dict[str, Tenant], name: str) -> None:
    """Each command at least once, for each tenant."""
    remote = tenants[""].remote
    assert isinstance(remote, Recorded)
    before = {other: tenants[other].get("m") for other in NAMES if other != name}
    for act, call in ACTS.items():
        remote.take()
        with tenants[name].open() as store, suppress(mire.NotFoundError):
            call(store)
        asked = remote.take()
        assert asked or act in IDLE, act
        assert [each for each in asked if not is_within(*each, name, NAMES[:2])] == [], act
    assert {other: tenants[other].get("m") for other in before} == before
