"""Finding what programs mixed up between tenants, and moving it out: never the only copy, never into another's part."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.edge.local import LocalRemote
from mire.edge.memory import MemoryRemote
from mire.edge.prefixed import Prefixed
from mire.flow.conflict import kept_dir
from mire.flow.contamination import Contamination, examine_namespace
from mire.flow.exchange import pull_now
from mire.flow.verify import verify
from mire.model.index import Entry
from mire.model.names import Namespace
from mire.plan.contamination import QUARANTINE, Stray, plan_repair, strays_among
from mire.wire.monolith import decode_monolith
from sync_world import Recorded, committed, data
from tenants import Tenant

if TYPE_CHECKING:
    from mire.edge.remote import Remote

A, B = "team-a", "team-b"
REL = str(data("x"))


class Two:
    """Two tenants of a store, and the store itself."""

    def __init__(self, top: Path, kind: str) -> None:
        shared = top / "shared"
        shared.mkdir()
        memory = MemoryRemote(content_fingerprint=kind != "generations")
        self.is_remote = kind != "directory"
        self.store: Remote = Recorded(memory) if self.is_remote else LocalRemote(str(shared))
        block: dict[str, object] | None = None if self.is_remote else {"type": "filesystem", "path": str(shared)}
        self.a, self.b = (Tenant(top / name, self.store if self.is_remote else None, block) for name in "ab")
        for tenant, name in ((self.a, A), (self.b, B)):
            tenant.take(name)
            tenant.put("m", f"of {name}")

    def all(self) -> dict[str, bytes]:
        """Everything there is, without locks."""
        return {s.key: self.store.get(s.key).data for s in self.store.list() if not s.key.endswith(".lock")}

    def doctor(self, tenant: Tenant, *, repair: bool = False, root: bool = False) -> Contamination:
        """Examine the part of one."""
        with tenant.open() as store:
            return examine_namespace(store.datastore, repair=repair, root=root)


@pytest.fixture(params=["directory", "remote", "generations"])
def two(request: pytest.FixtureRequest, fast_path: Path) -> Two:
    """Two tenants in a shared directory, or at a remote with either kind of fingerprints."""
    return Two(fast_path, request.param)


def test_a_clean_store_has_no_findings(two: Two) -> None:
    """And looking changes nothing."""
    before = two.all()
    for root in (False, True):
        assert two.doctor(two.a, root=root).findings == []
        assert two.doctor(two.a, root=root, repair=True).findings == []
    assert two.all() == before


def test_looking_changes_nothing(two: Two) -> None:
    """Findings name the place and the home of each."""
    two.store.put(f"{A}/{A}/{REL}", b"1")
    two.store.put(f"{A}/{B}/{REL}", b"2")
    before = two.all()
    found = two.doctor(two.a)
    assert [(each.kind, each.key, each.home) for each in found.findings] == [
        ("doubled", f"{A}/{A}/{REL}", f"{A}/{REL}"),
        ("foreign", f"{A}/{B}/{REL}", f"{B}/{REL}"),
    ]
    assert found.left == 2
    assert two.all() == before


def test_doubled_files_come_home(two: Two) -> None:
    """Listed with their hash, in their place; several doublings too; what is there already is only removed."""
    two.store.put(f"{A}/{A}/{REL}", b"only copy")
    two.store.put(f"{A}/{A}/{A}/logs/deep", b"deeper")
    same = str(data("m"))
    two.store.put(f"{A}/{A}/{same}", b"of team-a")
    found = two.doctor(two.a, repair=True)
    assert sorted((each.action, each.home) for each in found.findings) == [
        ("dropped", f"{A}/{same}"),
        ("moved", f"{A}/{REL}"),
        ("moved", f"{A}/logs/deep"),
    ]
    after = two.all()
    assert (after[f"{A}/{REL}"], after[f"{A}/logs/deep"], after[f"{A}/{same}"]) == (
        b"only copy",
        b"deeper",
        b"of team-a",
    )
    assert not [key for key in after if key.startswith(f"{A}/{A}/")]
    assert two.doctor(two.a).findings == []
    if two.is_remote:
        assert committed(Prefixed(two.store, A))[REL].sha256 is not None
        with two.a.open() as store:
            assert pull_now(store.datastore).is_whole
            assert not verify(store.datastore).findings


def test_other_bytes_at_home_are_kept_apart(two: Two) -> None:
    """Both stay: the file at home where it is, the stray in quarantine, where no client looks."""
    same = str(data("m"))
    two.store.put(f"{A}/{A}/{same}", b"another")
    found = two.doctor(two.a, repair=True)
    assert [each.action for each in found.findings] == ["quarantined"]
    after = two.all()
    assert after[f"{A}/{same}"] == b"of team-a"
    assert after[f"{A}/{QUARANTINE}{A}/{same}"] == b"another"
    two.store.put(f"{A}/{A}/{same}", b"a third")
    two.doctor(two.a, repair=True)
    assert {b"another", b"a third"} <= {body for key, body in two.all().items() if QUARANTINE in key}


def test_foreign_files_never_enter_the_other_part(two: Two) -> None:
    """What its owner has is removed here, what it has not goes into quarantine; nothing of it is written."""
    same = str(data("m"))
    theirs = {key: body for key, body in two.all().items() if key.startswith(f"{B}/")}
    two.store.put(f"{A}/{B}/{same}", b"of team-b")
    two.store.put(f"{A}/{B}/{REL}", b"only copy")
    two.store.put(f"{A}/{B}/.namespace.json", b"{}")
    two.store.put(f"{A}/{B}/_index/_meta.json", b"{}")
    found = two.doctor(two.a, repair=True)
    actions = {each.key.removeprefix(f"{A}/{B}/"): each.action for each in found.findings}
    assert actions == {
        same: "dropped",
        REL: "quarantined",
        ".namespace.json": "quarantined",
        "_index/_meta.json": "quarantined",
    }
    after = two.all()
    assert {key: body for key, body in after.items() if key.startswith(f"{B}/")} == theirs
    assert after[f"{A}/{QUARANTINE}{B}/{REL}"] == b"only copy"
    assert not [key for key in after if key.startswith(f"{A}/{B}/")]


def test_copies_at_the_root_are_removed_only_if_nobody_lists_them(fast_path: Path) -> None:
    """A copy of ours that no index lists goes, one of the solo tenant stays, and so does one with other bytes."""
    two = Two(fast_path, "remote")
    solo = Tenant(fast_path / "solo", two.store)
    solo.put("m", "of team-a")  # the same bytes, but its own
    two.a.put("x", "stripped")
    two.a.put("y", "mine")
    two.store.put(REL, b"stripped")
    two.store.put(str(data("y")), b"other")
    assert two.doctor(two.a).findings == []
    found = two.doctor(two.a, root=True, repair=True)
    assert sorted((each.key, each.action) for each in found.findings) == [(REL, "dropped"), (str(data("y")), "left")]
    after = two.all()
    assert REL not in after
    assert after[str(data("y"))] == b"other"
    assert solo.get("m") == "of team-a"


def test_in_a_directory_the_solo_tenants_files_are_no_copies_of_ours(fast_path: Path) -> None:
    """Alike by chance is not a copy: only versions with the same metadata are told, and nothing is removed."""
    two = Two(fast_path, "directory")
    solo = Tenant(fast_path / "solo", None, {"type": "filesystem", "path": str(fast_path / "shared")})
    solo.put("m", f"of {A}")  # the same content and the same number, but its own
    assert two.doctor(two.a, root=True).findings == []
    two.a.put("x", "stripped")
    mine = {key.removeprefix(f"{A}/"): body for key, body in two.all().items() if key.startswith(f"{A}/data/")}
    copied = {rel: body for rel, body in mine.items() if "/x/" in rel}
    for rel, body in copied.items():
        two.store.put(rel, body)
    before = two.all()
    found = two.doctor(two.a, root=True, repair=True)
    assert {(each.key, each.action) for each in found.findings} == {(rel, "left") for rel in copied}
    assert two.all() == before


@pytest.mark.parametrize("repair", [False, True])
def test_strays_in_a_cache_are_put_beside_it(fast_path: Path, *, repair: bool) -> None:
    """Doubled and foreign files of a cache: the same as at home goes, other bytes are kept, our own data stays."""
    two = Two(fast_path, "remote")
    with two.a.open() as store:
        tier, kept = Path(store.datastore.tier), Path(kept_dir(store.datastore))
    ours = (tier / data("m")).read_bytes()
    strays = {f"{A}/{data('m')}": ours, f"{A}/{data('z')}": b"doubled", f"{B}/{data('m')}": b"foreign"}
    for rel, body in strays.items():
        (tier / rel).parent.mkdir(parents=True, exist_ok=True)
        (tier / rel).write_bytes(body)
    (tier / "mine").mkdir()
    (tier / "mine" / "x").write_bytes(b"nobody registered it")
    before = two.all()
    found = two.doctor(two.a, repair=repair)
    assert {each.key for each in found.findings} == {str(tier / rel) for rel in strays}
    assert found.left == (0 if repair else 3)
    left = {path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    assert left == ({b"doubled", b"foreign"} if repair else set())
    assert [(tier / rel).exists() for rel in strays] == [not repair] * 3
    assert (tier / "mine" / "x").exists()
    assert two.all() == before
    assert two.a.get("m") == f"of {A}"
    if repair:
        assert two.doctor(two.a).findings == []
        assert not (tier / A).exists()


def test_a_listed_stray_leaves_the_index_and_no_object_is_asked_for(fast_path: Path) -> None:
    """A solo index that lists a namespace's files is corrected; the files themselves are not touched."""
    two = Two(fast_path, "remote")
    assert isinstance(two.store, Recorded)
    solo = Tenant(fast_path / "solo", two.store)
    solo.put("m", "solo")
    key = f"{B}/{data('m')}"
    body = two.store.get(".datastore-index.json")
    entry = Entry(size_bytes=9, last_modified="2026-01-01T00:00:00.000Z")
    two.store.put(
        ".datastore-index.json",
        decode_monolith(body.data).with_changes({key: entry}, last_pulled="2026-01-01T00:00:00.000Z"),
    )
    two.store.take()
    with solo.open() as store:
        pulled = pull_now(store.datastore)
        assert any(B in finding for finding in pulled.findings)
        found = examine_namespace(store.datastore, repair=True)
        assert [each.action for each in found.findings] == ["unlisted"]
        assert pull_now(store.datastore).is_whole
    assert not [asked for asked in two.store.take() if asked[1].startswith(f"{B}/")]
    assert key not in committed(two.store)
    assert two.b.get("m") == f"of {B}"


SEGMENTS = ["data", "outputs", "team-a", "team-b", "x", "_index", "files"]


@given(rel=st.lists(st.sampled_from(SEGMENTS), min_size=2, max_size=5))
def test_our_own_directories_are_never_strays(rel: list[str]) -> None:
    """Whatever is below `data/` or another directory of a datastore is ours, also if somebody registered its name."""
    path = "/".join(rel)
    found = strays_among([path], Namespace(A), known=["data", "outputs", B])
    if rel[0] in ("data", "outputs", "files", "_index"):
        assert found == []
    elif rel[0] in (A, B):
        assert [each.rel for each in found] == [path]
    else:
        assert bool(found) == (rel[1] in ("data", "outputs", "_index"))


def test_what_nobody_registered_is_told_and_left(two: Two) -> None:
    """Its shape alone is no reason to move it."""
    two.store.put(f"{A}/guess/{REL}", b"whose?")
    found = two.doctor(two.a, repair=True)
    assert [(each.kind, each.action) for each in found.findings] == [("foreign", "left")]
    assert two.all()[f"{A}/guess/{REL}"] == b"whose?"


@pytest.mark.parametrize(
    ("kind", "home", "same", "action"),
    [
        ("doubled", "data/x", True, "drop"),
        ("doubled", "data/x", None, "home"),
        ("doubled", "data/x", False, "quarantine"),
        ("doubled", "_index/_meta.json", None, "quarantine"),
        ("foreign", "data/x", True, "drop"),
        ("foreign", "data/x", None, "quarantine"),
        ("foreign", "data/x", False, "quarantine"),
    ],
)
def test_the_table_of_repairs(kind: str, home: str, same: bool | None, action: str) -> None:  # noqa: FBT001 - a column
    """Only what has a twin is dropped, and only our own files come home."""
    stray = Stray(rel=f"{A}/{home}", kind="doubled" if kind == "doubled" else "foreign", tenant=Namespace(A), home=home)
    assert plan_repair(stray, same) == action
