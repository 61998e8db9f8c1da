"""What every control plane must do, as functions that a backend runs against itself.

Owns: the checks of the reference's suites for control records and for records of the whole datastore, translated.
Must not know: pytest, which backend is checked.
Keeps: a failed check says its number and what was expected; what a check created it removes.

A backend that has a `Remote` runs `check_control_store(my_remote)`, which opens several handles as by other
processes. The numbers are those of the reference's checks.
"""

import threading
from collections.abc import Callable

from mire.edge.remote import Remote
from mire.errors import RemoteError
from mire.flow.control import ControlStore, fetch_datastore_record
from mire.model.names import SOLO, Namespace
from mire.testing.conformance_lock import ConformanceError, expect

OpenRemote = Callable[[], Remote]

_BASE = "mire-conformance"
_LARGE = bytes(range(256)) * 256


def check_control_store(open_remote: OpenRemote, *, namespace: Namespace = SOLO, creators: int = 8) -> None:
    """Records are put, read, listed and removed alike through every handle; one of many creators creates."""
    first, second = (ControlStore(open_remote(), lambda: namespace) for _ in range(2))
    try:
        _check_records(first, second)
        _check_listing(first, second)
        _check_creation(first, second)
        _check_concurrent_creation([ControlStore(open_remote(), lambda: namespace) for _ in range(creators)])
    finally:
        for key in first.list(_BASE):
            first.delete(key)
        for key in (f"{_BASE}-sibling", f"{_BASE}-sibling/x"):
            first.delete(key)


def _check_records(first: ControlStore, second: ControlStore) -> None:
    key = f"{_BASE}/record"
    expect(34, holds=first.get(key) is None, what="a record that is not there is something")
    first.put(key, b"one")
    expect(35, holds=first.get(key) == b"one", what="a record does not read back")
    first.put(key, b"two")
    expect(36, holds=first.get(key) == b"two", what="putting does not replace")
    expect(37, holds=second.get(key) == b"two", what="another handle does not see a write at once")
    first.put(f"{_BASE}/empty", b"")
    expect(38, holds=second.get(f"{_BASE}/empty") == b"", what="an empty record does not read back as empty")


def _check_listing(first: ControlStore, second: ControlStore) -> None:
    keys = [f"{_BASE}/list/{name}" for name in ("a", "b/c", "b/d/e")]
    for key in (*keys, f"{_BASE}-sibling/x", f"{_BASE}/list-sibling"):
        first.put(key, b"x")
    for prefix in (f"{_BASE}/list/", f"{_BASE}/list"):
        listed = sorted(second.list(prefix))
        expect(39, holds=listed == keys, what=f"below {prefix} are {keys}, not {listed}")
    expect(40, holds=second.list(f"{_BASE}/nothing/") == [], what="an empty listing is not empty")
    for key in keys:
        first.delete(key)
        expect(41, holds=second.get(key) is None, what="a removed record is still there")
        first.delete(key)
    first.delete(f"{_BASE}/never")  # 42: removing what is not there is no error
    expect(43, holds=second.list(f"{_BASE}/list/") == [], what="removed records are listed")


def _check_creation(first: ControlStore, second: ControlStore) -> None:
    key = f"{_BASE}/created"
    # 44: that creation exists at all, the type of `ControlStore` says.
    expect(45, holds=first.put_if_absent(key, _LARGE) is True, what="a free key cannot be created")
    expect(46, holds=second.get(key) == _LARGE, what="a created record is not there in full at once")
    for store in (first, second):
        expect(47, holds=store.put_if_absent(key, b"other") is False, what="a key was created twice")
    expect(48, holds=first.get(key) == _LARGE, what="a refused creation changed the record")
    expect(49, holds=second.put_if_absent(f"{_BASE}/record", b"") is False, what="a key that was put was created")
    first.delete(key)
    expect(50, holds=second.put_if_absent(key, b"again") is True, what="a removed key cannot be created again")


def _check_concurrent_creation(stores: list[ControlStore]) -> None:
    key = f"{_BASE}/raced"
    start = threading.Barrier(len(stores))
    won: list[int] = []
    failures: list[BaseException] = []

    def create(number: int) -> None:
        start.wait()
        try:
            if stores[number].put_if_absent(key, str(number).encode() * 1_000):
                won.append(number)
        except BaseException as error:  # noqa: BLE001 - raised where the threads are joined
            failures.append(error)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    expect(51, holds=len(won) == 1, what=f"{len(won)} of {len(stores)} created one record")
    expect(52, holds=stores[0].get(key) == str(won[0]).encode() * 1_000, what="the record is not the winner's")


def check_datastore_control_store(open_remote: OpenRemote) -> None:
    """Records of the whole datastore are read at its root, whatever namespace anybody is in."""
    key, namespace = f"{_BASE}-root", Namespace("mire-conformance")
    bound = {"to": SOLO}
    service = ControlStore(open_remote(), lambda: bound["to"])
    tenant = ControlStore(open_remote(), lambda: namespace)
    try:
        expect(54, holds=fetch_datastore_record(open_remote(), key) is None, what="a missing record is something")
        tenant.put(key, b"tenant's")
        expect(55, holds=fetch_datastore_record(open_remote(), key) is None, what="a namespace's record is seen")
        service.put(key, b"root's")
        expect(53, holds=fetch_datastore_record(open_remote(), key) == b"root's", what="the root's record is not read")
        bound["to"] = namespace
        expect(56, holds=service.get(key) == b"tenant's", what="a store cannot be bound to a namespace later")
        expect(56, holds=fetch_datastore_record(open_remote(), key) == b"root's", what="binding moved the root")
        try:
            fetch_datastore_record(open_remote(), key, deadline_ms=0)
        except RemoteError:
            return
        raise ConformanceError("check 57: a read that was given up was answered")
    finally:
        tenant.delete(key)
        bound["to"] = SOLO
        service.delete(key)
