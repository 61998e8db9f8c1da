"""Looking into other namespaces: only what they publish, and content by its name."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mire
from mire.edge.memory import MemoryRemote
from mire.flow.foreign import ForeignView, foreign_view
from mire.flow.registry import list_namespaces
from mire.model.manifest import Manifest
from mire.model.names import DATASTORE_SUBDIRS, Namespace
from mire.wire.manifest import encode_manifest
from mire.wire.relpath import is_internal
from sync_world import Recorded, World, data

A, B = Namespace("team-a"), Namespace("team-b")
MANIFEST = encode_manifest(Manifest(namespace=B, repo_id="r-b", registered_at="2026-01-01T00:00:00.000Z"))


@pytest.fixture
def store() -> Recorded:
    """A store with two namespaces and a solo tenant."""
    memory = MemoryRemote()
    memory.put(f"{B}/.namespace.json", MANIFEST)
    memory.put(f"{B}/.catalog-export.json", b"[]")
    memory.put(f"{B}/{data('m')}", b"content")
    memory.put(data("m"), b"solo")
    return Recorded(memory)


def test_content_manifests_and_catalogs_are_read(store: Recorded) -> None:
    """In one piece, in many, and only if it changed."""
    view = ForeignView(store)
    body = view.get(B, data("m"))
    assert body.data == b"content"
    assert view.get_if_changed(B, data("m"), body.stat.fingerprint) is None
    assert b"".join(view.get_stream(B, ".catalog-export.json").chunks) == b"[]"
    assert view.head(B, data("m")).size_bytes == 7
    found = view.manifest(B)
    assert found is not None
    assert found.repo_id == "r-b"
    assert view.manifest(A) is None


@pytest.mark.parametrize("namespace", ["", "data", "_index", "a/b", "..", "_control", ".locks"])
def test_only_namespaces_can_be_looked_into(store: Recorded, namespace: str) -> None:
    """Not the solo tenant, nor a directory of the datastore."""
    store.take()
    with pytest.raises(mire.InputError):
        ForeignView(store).get(Namespace(namespace), data("m"))
    assert store.take() == []


@pytest.mark.parametrize(
    "rel",
    [
        ".datastore-index.json",
        ".datastore.lock",
        "_index/_meta.json",
        "_control/token-secrets/x",
        "data/aws/ec2/vpc/m/.lock",
        "../team-a/data/x",
        "/data/x",
        "data//x",
        "",
        "notes.txt",
    ],
)
def test_what_is_not_shared_cannot_be_asked_for(store: Recorded, rel: str) -> None:
    """Indexes, locks, control records and ways out are refused before anything is sent."""
    store.take()
    with pytest.raises(mire.InputError):
        ForeignView(store).get(B, rel)
    assert store.take() == []


@given(namespace=st.text(alphabet="ab-/._data", max_size=12), rel=st.text(alphabet="ab./_-dtxn\\", max_size=24))
def test_no_text_leads_elsewhere(namespace: str, rel: str) -> None:
    """Whatever is asked, a request goes to one object of a namespace that is no index, lock or record."""
    store = Recorded(MemoryRemote())
    with contextlib.suppress(mire.MireError):
        ForeignView(store).head(Namespace(namespace), rel)
    for operation, key in store.take():
        assert operation == "head"
        top, _, rest = key.partition("/")
        assert top == namespace
        assert top not in DATASTORE_SUBDIRS
        assert not is_internal(rest)
        assert ".." not in rest.split("/")


def test_a_view_can_only_read() -> None:
    """Nothing of it writes, deletes, copies or lists."""
    public = {name for name in dir(ForeignView) if not name.startswith("_")}
    assert public == {"get", "get_if_changed", "get_stream", "head", "manifest"}


def test_directories_are_looked_into_like_remotes(store: Recorded, tmp_path: Path, repo: Path) -> None:
    """A shared directory shows what a remote would."""
    del store
    shared = tmp_path / "shared"
    for rel, content in {".namespace.json": MANIFEST, str(data("m")): b"content"}.items():
        path = shared / B / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with mire.open(repo, datastore=f"filesystem:{shared}") as opened:
        view = foreign_view(opened.datastore)
        assert view.get(B, data("m")).data == b"content"
        assert [each.repo_id for each in list_namespaces(opened.datastore)] == ["r-b"]


def test_listing_namespaces_lists_one_level(worlds: Callable[..., World], store: Recorded) -> None:
    """One request for the names at the top, one for each that can be a namespace; nothing below is listed."""
    for number in range(50):
        store.put(f"{B}/{data(f'm-{number}')}", b"x")
    store.put("_index/x.json", b"{}")
    store.put("nobody/data/x", b"")
    client = worlds().client(store, namespace=A)
    store.take()
    found = list_namespaces(client.ds)
    assert [(each.namespace, each.repo_id, each.is_ours) for each in found] == [(B, "r-b", False)]
    assert sorted(store.take()) == [
        ("get", "nobody/.namespace.json"),
        ("get", "team-b/.namespace.json"),
        ("list_level", ""),
    ]


def test_a_manifest_that_is_not_understood_is_a_claim(worlds: Callable[..., World], store: Recorded) -> None:
    """It is listed with what is wrong with it: its name is not free."""
    store.put(f"{A}/.namespace.json", b"garbage")
    found = list_namespaces(worlds().client(store).ds)
    assert [(each.namespace, each.trouble is None) for each in found] == [(A, False), (B, True)]
