"""The namespace that the reference wrote: read, extended by ours, read again, moved out and in."""

import json
from pathlib import Path

import pytest

import mire
from mire.edge.memory import MemoryRemote
from mire.edge.prefixed import Prefixed
from mire.flow.control import ControlStore
from mire.flow.exchange import pull_now, push_now
from mire.flow.mark import mark_all
from mire.flow.namespace import show_namespace
from mire.flow.namespace_migrate import migrate_namespace
from mire.flow.registry import list_namespaces
from mire.flow.verify import verify
from mire.model.names import Namespace
from mire.wire.monolith import decode_monolith
from old_clients import august_index
from sync_world import Recorded, check_lists, committed
from tenants import Tenant

GOLDEN = Path(__file__).parent.parent / "golden"
BUCKET = GOLDEN / "namespaced/bucket"
OURS = "team-a"
REPO_ID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def bucket() -> Recorded:
    """The bucket as the reference left it: its objects, and for each entry the file it was made of."""
    memory = MemoryRemote()
    for path in BUCKET.rglob("*"):
        if path.is_file():
            memory.put(str(path.relative_to(BUCKET)), path.read_bytes())
    for rel in decode_monolith(memory.get(f"swamp/{OURS}/.datastore-index.json").data):
        memory.put(f"swamp/{OURS}/{rel}", (GOLDEN / "tree" / rel).read_bytes())
    ControlStore(Prefixed(memory, "swamp"), lambda: Namespace(OURS)).put("heartbeats/server-1", b"{}")
    return Recorded(memory)


def member(top: Path, name: str, bucket: Recorded, repo_id: str = REPO_ID) -> Tenant:
    """A clone of a repository in the namespace, with a cache of its own."""
    tenant = Tenant(top / name / "repo", Prefixed(bucket, "swamp"))
    settings = tenant.repo / ".swamp.yaml"
    text = settings.read_text().replace(tenant.repo_id, repo_id)
    settings.write_text(f"{text.rstrip()}\n  namespace: {OURS}\n")
    return tenant


def test_it_is_read_extended_and_read_again(fast_path: Path, bucket: Recorded) -> None:
    """Every file comes as it was; what ours adds is there for ours and for the reference, and the rest stays."""
    for name in ("one", "two"):
        (fast_path / name).mkdir()
    one, two = (member(fast_path, name, bucket) for name in ("one", "two"))
    part = Prefixed(bucket, f"swamp/{OURS}")
    before = committed(part)
    with one.open() as store:
        assert [each.repo_id for each in list_namespaces(store.datastore)] == [REPO_ID]
        done = pull_now(store.datastore, full=True)
        assert done.is_whole
        assert len(done.written) == len(before) == 157
        for rel in before:
            assert (Path(store.datastore.tier) / rel).read_bytes() == (GOLDEN / "tree" / rel).read_bytes()
        assert not verify(store.datastore, deep=True).findings
        mark_all(store.datastore)
        assert push_now(store.datastore).count == 0
        store.model("aws/ec2/vpc", "by-mire").put("state", {"cidr": "10.0.0.0/16"})
        assert store.query('modelId == "by-mire"').rows
    after = committed(part)
    assert {rel: after[rel] for rel in before} == before
    assert len(after) == len(before) + 3 + 1  # a version, and the published catalog
    check_lists(part)
    assert august_index(part).keys() == after.keys()
    assert bucket.get(f"swamp/{OURS}/_control/heartbeats/server-1").data == b"{}"
    manifest = bucket.get(f"swamp/{OURS}/.namespace.json").data
    assert manifest == (BUCKET / f"swamp/{OURS}/.namespace.json").read_bytes()
    with two.open() as store:
        assert pull_now(store.datastore, full=True).is_whole
        assert store.model("aws/ec2/vpc", "by-mire").get("state").json() == {"cidr": "10.0.0.0/16"}
        assert show_namespace(str(two.repo)).namespace == OURS


def test_another_repository_cannot_write_there(fast_path: Path, bucket: Recorded) -> None:
    """The manifest of the reference is a claim as ours is."""
    (fast_path / "other").mkdir()
    other = member(fast_path, "other", bucket, repo_id="99999999-2222-4333-8444-555555555555")
    with pytest.raises(mire.ConflictError, match=REPO_ID):
        other.put("m", "x")
    assert json.loads(bucket.get(f"swamp/{OURS}/.namespace.json").data)["repoId"] == REPO_ID


def test_it_moves_out_and_in_again(fast_path: Path, bucket: Recorded) -> None:
    """All entries are at the root, then back, each with its hash."""
    (fast_path / "one").mkdir()
    one = member(fast_path, "one", bucket)
    with one.open() as store:
        pull_now(store.datastore)
        push_now(store.datastore)
    root, part = Prefixed(bucket, "swamp"), Prefixed(bucket, f"swamp/{OURS}")
    before = committed(part)
    with one.home():
        assert migrate_namespace(str(one.repo), reverse=True).files == 157
        assert committed(root) == before
        assert committed(part) == {}
        one.take(OURS)
        assert migrate_namespace(str(one.repo), adopt=True).files == 157
    assert committed(part) == before
    assert committed(root) == {}
