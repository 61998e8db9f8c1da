"""Twenty repositories in twenty namespaces of one bucket, at the same time."""

import threading
from collections import Counter
from pathlib import Path

import pytest

import mire
from mire.edge.objectstore import open_s3
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote
from mire.flow.exchange import pull_now
from mire.flow.registry import list_namespaces
from mire.model.backend import S3Settings
from mire.testing.s3server import S3Server
from sync_world import check_lists, committed, data
from tenants import Tenant

COUNT = 20
WRITES = 3


def tenants_of(top: Path, remote: Remote) -> dict[str, Tenant]:
    """Repositories with equal names of models in all of them, each in a namespace."""
    found = {}
    for number in range(COUNT):
        name = f"team-{number:02}"
        found[name] = Tenant(top / name, remote, {"index": "sharded" if number % 2 else "dual"})
        found[name].take(name)
    return found


def test_they_do_not_meet(fast_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lock is refused to anybody, every lock is in its own namespace, and every tree is what its owner wrote."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    settings = S3Settings(
        bucket="b", prefix="shared", region="us-east-1", endpoint=s3_server.url, force_path_style=True
    )
    remote = open_s3(settings)
    tenants = tenants_of(fast_path, remote)
    barrier, failed = threading.Barrier(COUNT, timeout=60), []
    s3_server.traffic.reset()
    with next(iter(tenants.values())).home():  # the same for all of them, and process-wide
        stores = {name: each_store(tenant) for name, tenant in tenants.items()}

        def work(name: str) -> None:
            try:
                barrier.wait()
                for number in range(WRITES):
                    stores[name].model("aws/ec2/vpc", "m").put("state", f"{name} {number}")
            except BaseException as error:  # noqa: BLE001 - told below
                failed.append((name, error))

        threads = [threading.Thread(target=work, args=(name,)) for name in tenants]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert failed == []
    locks = [each for each in s3_server.traffic.log() if each.key.endswith(".lock") and each.operation == "PutObject"]
    assert Counter(each.status for each in locks)[412] == 0, "somebody waited for a lock"
    created = Counter(each.key for each in locks)
    for name in tenants:
        assert created[f"shared/{name}/data/aws/ec2/vpc/m/.lock"] >= WRITES
    owners = {key.removeprefix("shared/").removeprefix(".locks/").partition("/")[0] for key in created}
    assert {owner.removesuffix(".lock") for owner in owners} <= tenants.keys()
    for name, tenant in tenants.items():
        part = Prefixed(remote, name)
        entries = committed(part)
        assert len(entries) == 2 * WRITES + 2, name  # content and metadata, the marker, and the published catalog
        assert part.get(data("m", version=WRITES)).data == f"{name} {WRITES - 1}".encode()
        check_lists(part)
        assert tenant.get("m") == f"{name} {WRITES - 1}"
    with tenants["team-00"].open() as store:
        assert [each.namespace for each in list_namespaces(store.datastore)] == sorted(tenants)
        assert pull_now(store.datastore).count == 0


def each_store(tenant: Tenant) -> mire.Store:
    """A store that stays open."""
    return mire.open(tenant.repo)
