"""Twenty repositories in twenty namespaces of one bucket, at the same time."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

import mire
from mire.edge.objectstore import open_s3
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote, Stored
from mire.edge.wrap import Wrapper
from mire.flow.exchange import pull_now
from mire.flow.registry import list_namespaces
from mire.model.backend import S3Settings
from servers import answers, first_that_starts, free_ports, running
from sync_world import check_lists, committed, data
from tenants import Tenant

T = TypeVar("T")
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


class Answered(Wrapper):
    """A remote that remembers what was answered to conditional writes of locks."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)
        self.answers: list[tuple[str, object]] = []

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        answer = call()
        if operation == "put_if" and key.endswith(".lock"):
            self.answers.append((key, answer))
        return answer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of our S3 server in a process of its own: it works while the tenants do."""

    @contextmanager
    def start() -> Iterator[str]:
        (port,) = free_ports(1)
        url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "mire.testing.s3server", "--port", str(port), "--bucket", "bucket"]
        with running(command, tmp_path / "log", lambda: answers(url)):
            yield url

    yield from first_that_starts(start)


def test_they_do_not_meet(fast_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lock is refused to anybody, every lock is in its own namespace, and every tree is what its owner wrote."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    settings = S3Settings(bucket="bucket", prefix="shared", region="us-east-1", endpoint=server, force_path_style=True)
    remote = Answered(open_s3(settings))
    tenants = tenants_of(fast_path, remote)
    barrier, failed = threading.Barrier(COUNT, timeout=60), []
    remote.answers.clear()
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
    assert {type(answer) for _, answer in remote.answers} == {Stored}, "somebody waited for a lock"
    created = Counter(key for key, _ in remote.answers)
    for name in tenants:
        assert created[f"{name}/data/aws/ec2/vpc/m/.lock"] >= WRITES
    owners = {key.removeprefix(".locks/").partition("/")[0] for key in created}
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
