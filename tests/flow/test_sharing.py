"""Namespaces see each other's published rows and content, in a directory, in memory and over S3."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.memory import MemoryRemote
from mire.edge.objectstore import open_s3
from mire.edge.remote import Remote
from mire.errors import ConflictError, DeniedError, InputError, NotFoundError, RemoteError
from mire.flow.catalog import rebuild
from mire.flow.imports import forget_imports, import_catalogs, imports_path, known_imports
from mire.model.backend import S3Settings
from mire.model.names import Namespace
from mire.plan import publish
from mire.testing.s3server import S3Server
from mire.wire.export import EXPORT
from sharing_world import Tenant, Tenants
from sync_world import Hooked

RAW = "data/net/router/r/state/1/raw"
METADATA = "data/net/router/r/state/1/metadata.yaml"
INFRA = Namespace("infra")
GOLDEN = Path(__file__).parent.parent / "golden" / "namespaced" / "bucket" / "swamp"


def s3(server: S3Server) -> Remote:
    """Our S3 server."""
    return open_s3(S3Settings(bucket="b", prefix="p", region="us-east-1", endpoint=server.url, force_path_style=True))


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is, publishing is cheap."""
    monkeypatch.setattr(publish, "CHEAP_MS", float("inf"))


@pytest.fixture(params=["directory", "memory", "s3"])
def tenants(request: pytest.FixtureRequest, fast_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenants]:
    """A store of each kind."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    remotes: dict[str, Callable[[], Remote | None]] = {
        "directory": lambda: None,
        "memory": MemoryRemote,
        "s3": lambda: s3(request.getfixturevalue("s3_server")),
    }
    made = Tenants(fast_path, remotes[request.param]())
    yield made
    made.close()


@pytest.fixture
def pair(tenants: Tenants) -> tuple[Tenant, Tenant]:
    """Two namespaces with the same model ids, as a fork has them, and other content; one has imported the other."""
    infra, web = tenants.tenant("infra"), tenants.tenant("web")
    infra.put("r", {"of": "infra", "n": 1}, tags={"env": "prod"})
    web.put("r", {"of": "web", "n": 1}, tags={"env": "prod"})
    assert [each.outcome for each in web.pull("infra")] == ["imported"]
    return infra, web


# --- what a query sees


def test_rows_of_others_are_seen_when_they_are_asked_for(pair: tuple[Tenant, Tenant]) -> None:
    """By `all_namespaces`, or by a predicate that mentions `ns`; otherwise only our own."""
    _, web = pair
    assert web.query("true") == [("web", "r", 1)]
    assert web.query("tags.env == 'prod'", all_namespaces=True) == [("infra", "r", 1), ("web", "r", 1)]
    assert web.query("ns == 'infra'") == [("infra", "r", 1)]
    assert web.query("ns != ''") == [("infra", "r", 1), ("web", "r", 1)]
    assert web.query("ns == 'web'") == [("web", "r", 1)]
    assert web.query("ns == 'nobody'") == []


def test_pages_and_order_span_namespaces(pair: tuple[Tenant, Tenant]) -> None:
    """Order, limit, offset and cursor treat rows of all namespaces as one table."""
    infra, web = pair
    for number in range(3):
        infra.put(f"i-{number}", {"n": number})
        web.put(f"w-{number}", {"n": number})
    web.pull("infra")
    whole = [row["modelId"] for row in web.store.query("true", all_namespaces=True, order_by="modelId")]
    assert whole == ["i-0", "i-1", "i-2", "r", "r", "w-0", "w-1", "w-2"]
    page = web.store.query("true", all_namespaces=True, order_by="modelId", limit=5)
    assert [row["modelId"] for row in page] == whole[:5]
    rest = web.store.query("true", all_namespaces=True, order_by="modelId", cursor=page.cursor)
    assert [row["modelId"] for row in rest] == whole[5:]
    middle = web.store.query("true", all_namespaces=True, order_by="modelId desc", limit=2, offset=3)
    assert [row["modelId"] for row in middle] == ["r", "r"]
    assert next(iter(web.store.query("true", all_namespaces=True, order_by="modelId")))["modelId"] == "i-0"
    assert len(web.query("true")) == 4


def test_history_and_the_latest_version_follow_the_origin(pair: tuple[Tenant, Tenant]) -> None:
    """Only the latest versions, unless versions are asked for."""
    infra, web = pair
    infra.put("r", {"of": "infra", "n": 2})
    web.pull("infra")
    assert web.query("ns == 'infra'") == [("infra", "r", 2)]
    assert web.query("ns == 'infra'", history=True) == [("infra", "r", 1), ("infra", "r", 2)]


# --- bringing catalogs here


def test_an_unchanged_catalog_is_not_downloaded_again(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """One request for each namespace: conditional where something is known of it."""
    infra, web = pair
    tenants.take()
    (again,) = web.pull("infra")
    assert (again.outcome, again.rows) == ("unchanged", 1)
    if tenants.is_remote:
        assert tenants.take() == [("get_if_changed", f"infra/{EXPORT}")]
    infra.put("other", {"n": 1})
    tenants.take()
    (changed,) = web.pull("infra")
    assert (changed.outcome, changed.rows) == ("imported", 2)
    if tenants.is_remote:
        assert tenants.take() == [("get_if_changed", f"infra/{EXPORT}")]


def test_all_namespaces_are_found_by_one_listing_of_the_top_level(tenants: Tenants) -> None:
    """And one request for each; our own is not among them, nor what can be no namespace."""
    infra, web, solo = tenants.tenant("infra"), tenants.tenant("web"), tenants.tenant("")
    for each in (infra, web, solo):
        each.put("r", {"n": 1})
    tenants.take()
    assert [(each.namespace, each.outcome) for each in web.pull()] == [("infra", "imported")]
    if tenants.is_remote:
        assert tenants.take() == [("list_level", ""), ("get", f"infra/{EXPORT}")]
    assert [(each.namespace, each.rows) for each in solo.pull()] == [("infra", 1), ("web", 1)]
    assert solo.query("true") == [("", "r", 1)]
    assert solo.query("true", all_namespaces=True) == [("", "r", 1), ("infra", "r", 1), ("web", "r", 1)]


def test_missing_damaged_and_good_catalogs_are_told_apart(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """Each by its namespace; none keeps another from being imported, and what is damaged leaves what was known."""
    infra, web = pair
    third = tenants.tenant("third")
    third.put("t", {"n": 1})
    tenants.damage("infra", EXPORT, b"[{")
    found = web.pull("infra", "nobody", "third")
    assert [(each.namespace, each.outcome, each.rows) for each in found] == [
        ("infra", "damaged", 1),
        ("nobody", "missing", 0),
        ("third", "imported", 1),
    ]
    assert found[0].message is not None
    assert "infra/.catalog-export.json" in found[0].message
    assert web.query("ns != 'web'") == [("infra", "r", 1), ("third", "t", 1)]
    infra.put("new", {"n": 1})
    if tenants.is_remote:
        assert [each.outcome for each in web.pull("infra")] == ["imported"]


def test_rows_that_are_none_of_the_namespace_are_left_out(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """A namespace cannot speak for another, for us, or for a path outside; its other rows come."""
    _, web = pair
    (row,) = json.loads(tenants.published("infra"))
    lies = [{**row, "namespace": "web"}, {**row, "namespace": ""}, {**row, "data_name": "../../x"}, {"relPath": "x"}]
    tenants.damage("infra", EXPORT, json.dumps([*lies, {**row, "model_id": "honest"}]).encode())
    (done,) = web.pull("infra")
    assert (done.outcome, done.rows, done.refused) == ("imported", 1, 4)
    assert web.query("true", all_namespaces=True) == [("infra", "honest", 1), ("web", "r", 1)]
    tenants.damage("infra", EXPORT, json.dumps(lies).encode())
    (none,) = web.pull("infra")
    assert (none.outcome, none.rows) == ("damaged", 1)


def test_the_golden_export_of_an_extension_is_told_to_hold_no_catalog(
    tenants: Tenants, pair: tuple[Tenant, Tenant]
) -> None:
    """Its rows are paths with sizes, of which no query can be answered: what was known stays."""
    _, web = pair
    tenants.damage("infra", EXPORT, (GOLDEN / "team-a" / EXPORT).read_bytes())
    (done,) = web.pull("infra")
    assert (done.outcome, done.rows) == ("damaged", 1)
    assert "none of its 5 rows" in (done.message or "")


def test_names_that_cannot_be_asked_for_are_refused_before_anything_is(tenants: Tenants) -> None:
    """Our own namespace, no name, and what is no slug."""
    web = tenants.tenant("web")
    for name in ("web", "", "In fra", "data", "../infra"):
        with pytest.raises(InputError):
            web.pull("infra", name)
    assert tenants.take() == []
    assert not Path(imports_path(web.ds)).exists()


def test_a_refusal_and_an_outage_are_told_apart(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """What was known stays, and the others come."""
    _, web = pair
    third = tenants.tenant("third")
    third.put("t", {"n": 1})
    if tenants.recorded is None:
        return
    hooked = Hooked(tenants.recorded)

    def deny() -> None:
        raise DeniedError("this key is not for you", kind="denied")

    hooked.at("get*", f"infra/{EXPORT}", deny)
    ds = replace(web.ds, remote=hooked)
    found = import_catalogs(ds, [INFRA, Namespace("third")])
    assert [(each.outcome, each.rows) for each in found] == [("denied", 1), ("imported", 1)]
    hooked.fail("get*", f"infra/{EXPORT}")
    assert [each.outcome for each in import_catalogs(ds, [INFRA])] == ["unreachable"]
    assert web.query("ns == 'infra'") == [("infra", "r", 1)]


def test_a_directory_that_may_not_be_read_is_denied(fast_path: Path) -> None:
    """The same for files: the bits of the file decide, whoever else can be read."""
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    tenants = Tenants(fast_path, None)
    infra, web = tenants.tenant("infra"), tenants.tenant("web")
    infra.put("r", {"n": 1})
    (tenants.share / "infra" / EXPORT).chmod(0)
    assert [each.outcome for each in web.pull("infra")] == ["denied"]
    tenants.close()


def test_a_rebuild_of_our_catalog_neither_loses_nor_mixes_rows_of_others(pair: tuple[Tenant, Tenant]) -> None:
    """Theirs are in a file of their own."""
    _, web = pair
    rebuild(web.ds)
    assert web.query("true", all_namespaces=True) == [("infra", "r", 1), ("web", "r", 1)]
    assert web.query("true") == [("web", "r", 1)]


def test_a_damaged_import_costs_a_download_and_nothing_else(pair: tuple[Tenant, Tenant]) -> None:
    """Our own rows are answered; the next pull brings theirs again."""
    _, web = pair
    web.store.close()
    Path(imports_path(web.ds)).write_bytes(b"no database at all, but long enough to be taken for one")
    assert web.query("true", all_namespaces=True) == [("web", "r", 1)]
    assert [each.outcome for each in web.pull("infra")] == ["imported"]
    assert web.query("ns == 'infra'") == [("infra", "r", 1)]


def test_a_repository_that_moves_to_another_store_forgets_what_it_imported(
    pair: tuple[Tenant, Tenant], fast_path: Path
) -> None:
    """Rows of a namespace belong to the store it is in; so does a name that becomes our own."""
    _, web = pair
    moved = replace(web.ds, config=replace(web.ds.config, namespace=INFRA))
    ours = mire.Store(moved).query("true", all_namespaces=True)
    assert len(ours) == (0 if web.client is not None else 1)  # a cache of ours is empty; their directory is not
    (fast_path / "elsewhere").mkdir()
    other = replace(web.ds, base=str(fast_path / "elsewhere"), remote=None)
    assert known_imports(other) == []


def test_forgetting_drops_rows_and_content(pair: tuple[Tenant, Tenant]) -> None:
    """Nothing of a namespace is left."""
    _, web = pair
    assert web.store.query("ns == 'infra'", select="content.of").rows == ["infra"]
    assert forget_imports(web.ds, [INFRA]) == 1
    assert web.query("true", all_namespaces=True) == [("web", "r", 1)]
    assert [path for path in Path(web.ds.local).rglob("*") if "others/infra/" in str(path)] == []


# --- the weaknesses of core-layout §11.4


def test_11_4_2_two_namespaces_on_one_disk_see_each_other(fast_path: Path) -> None:
    """A pull works on a directory, and every write is published without another command."""
    tenants = Tenants(fast_path, None)
    infra, web = tenants.tenant("infra"), tenants.tenant("web")
    infra.router("r").put("state", {"of": "infra"})
    assert [(each.outcome, each.rows) for each in web.pull("infra")] == [("imported", 1)]
    assert web.store.query("ns == 'infra'", select="content.of").rows == ["infra"]
    tenants.close()


def test_11_4_3_rows_go_when_their_origin_removes_them(pair: tuple[Tenant, Tenant]) -> None:
    """A version that was pruned is neither there nor the latest; structural work publishes as well."""
    infra, web = pair
    for number in (2, 3):
        infra.put("r", {"of": "infra", "n": number}, version_policy=1)
    web.pull("infra")
    assert len(web.query("ns == 'infra'", history=True)) == 3
    infra.store.retain()
    infra.publish()
    web.pull("infra")
    assert web.query("ns == 'infra'", history=True) == [("infra", "r", 3)]
    assert web.query("ns == 'infra' && isLatest") == [("infra", "r", 3)]
    infra.delete("r")
    web.pull("infra")
    assert web.query("ns == 'infra'", history=True) == []


def test_11_4_3_rows_go_when_the_whole_catalog_does(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """A namespace that publishes nothing any more has no rows here."""
    _, web = pair
    tenants.remove("infra", EXPORT)
    (done,) = web.pull("infra")
    assert (done.outcome, done.rows) == ("missing", 0)
    assert web.query("true", all_namespaces=True) == [("web", "r", 1)]


def test_11_4_4_content_predicates_and_projections_see_the_content_of_others(
    tenants: Tenants, pair: tuple[Tenant, Tenant]
) -> None:
    """Content is fetched before matching: metadata and bytes of each row, once; the second time nothing is asked."""
    _, web = pair
    tenants.take()
    assert web.query("attributes.of == 'infra'", all_namespaces=True) == [("infra", "r", 1)]
    if tenants.is_remote:
        assert [key for _, key in tenants.take()] == [f"infra/{METADATA}", f"infra/{RAW}"]
    shown = web.store.query("ns != ''", select="ns + ' ' + content.of", order_by="ns")
    assert shown.rows == ["infra infra", "web web"]
    assert tenants.take() == []


def test_11_4_4_bytes_of_ours_are_never_taken_for_theirs(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """The same model, name, version and even metadata id in both namespaces: each row has its own bytes."""
    _, web = pair
    ours = Path(web.ds.tier) / RAW
    assert ours.read_bytes() != b""
    (row,) = json.loads(tenants.published("infra"))
    own = web.store.query("true")[0]
    tenants.damage("infra", EXPORT, json.dumps([{**row, "id": own["id"], "size": own["size"]}]).encode())
    web.pull("infra")
    answer = web.store.query("ns == 'infra' && attributes.of == 'web'")
    assert answer.rows == []
    assert len(answer.problems) == 1
    assert "another version" in answer.problems[0]
    assert web.store.query("true", select="content.of").rows == ["web"]


def test_11_4_5_an_address_with_a_namespace_is_never_answered_with_our_own(pair: tuple[Tenant, Tenant]) -> None:
    """`infra:router-r` is infra's, although we have a model of that name; without a prefix it is ours."""
    infra, web = pair
    assert web.store.find("infra:router-r", "state")["content"] == {"of": "infra", "n": 1}
    assert web.store.find("router-r", "state")["content"] == {"of": "web", "n": 1}
    assert web.store.find(":router-r", "state")["content"] == {"of": "web", "n": 1}
    with pytest.raises(ConflictError, match="infra:router-r, web:router-r"):
        web.store.find("*:router-r", "state")
    infra.put("only", {"n": 7})
    web.pull("infra")
    assert web.store.find("*:router-only", "state")["attributes"] == {"n": 7}
    infra.delete("r")
    web.pull("infra")
    with pytest.raises(NotFoundError, match="nothing of that name"):
        web.store.find("infra:router-r", "state")
    with pytest.raises(NotFoundError, match="catalog pull --namespaces third"):
        web.store.find("third:router-r", "state")


def test_11_4_6_a_catalog_of_ours_in_their_place_is_told_and_not_imported(
    tenants: Tenants, pair: tuple[Tenant, Tenant]
) -> None:
    """Contamination does not spread: rows say which namespace they are of, and only those count."""
    _, web = pair
    tenants.damage("infra", EXPORT, tenants.published("web"))
    (done,) = web.pull("infra")
    assert done.outcome == "damaged"
    assert done.message is not None
    assert "'web'" in done.message


# --- content that is not what it should be


def damaged_content(tenants: Tenants, how: str) -> None:
    """Something happens to a version of infra after its catalog was imported."""
    if how == "gone":
        tenants.remove("infra", RAW)
    elif how == "no metadata":
        tenants.remove("infra", METADATA)
    elif how == "other bytes":
        tenants.damage("infra", RAW, b'{"of":"infrb","n":1}')
    elif how == "longer":
        tenants.damage("infra", RAW, b'{"of":"infra","n":1} ' + b" " * 100_000)
    else:
        tenants.damage("infra", METADATA, b"id: [")


@pytest.mark.parametrize("how", ["gone", "no metadata", "other bytes", "longer", "damaged metadata"])
def test_content_that_cannot_be_verified_is_told_and_never_shown(
    tenants: Tenants, pair: tuple[Tenant, Tenant], how: str
) -> None:
    """The row is named among the problems, other rows are answered; with `strict` it is an error."""
    _, web = pair
    damaged_content(tenants, how)
    answer = web.store.query("attributes.n == 1", all_namespaces=True)
    assert [row["namespace"] for row in answer] == ["web"]
    (problem,) = answer.problems
    assert problem.startswith("infra:net/router/r state version 1: ")
    shown = web.store.query("true", all_namespaces=True, select="content", order_by="ns")
    assert shown.rows[0] is None
    assert len(shown.problems) == 1
    with pytest.raises(mire.MireError):
        web.store.query("attributes.n == 1", all_namespaces=True, strict=True).rows  # noqa: B018 - it is read here
    with pytest.raises(RemoteError):
        web.store.find("infra:router-r", "state")


def test_what_is_kept_is_verified_when_it_is_used_again(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """A kept copy that somebody changed is fetched anew; nothing of it is in a tier that is synced."""
    _, web = pair
    assert web.store.query("ns == 'infra'", select="content.of").rows == ["infra"]
    (kept,) = [path for path in Path(web.ds.local).rglob("*") if path.is_file() and "others/infra/" in str(path)]
    assert hashlib.sha256(kept.read_bytes()[64:]).hexdigest().encode() == kept.read_bytes()[:64]
    if web.client is not None:
        assert not any("others" in name for name in web.client.files())
    kept.write_bytes(kept.read_bytes()[:64] + b'{"of":"evil!","n":1}')
    assert web.store.query("ns == 'infra'", select="content.of").rows == ["infra"]


def test_content_that_was_kept_goes_with_its_row(pair: tuple[Tenant, Tenant]) -> None:
    """Importing a changed catalog sweeps what no row is about."""
    infra, web = pair
    web.query("attributes.n == 1", all_namespaces=True)
    infra.delete("r")
    infra.put("r", {"of": "infra", "n": 2})
    web.pull("infra")
    assert [path for path in Path(web.ds.local).rglob("*") if path.is_file() and "others/infra/" in str(path)] == []
    assert web.store.query("ns == 'infra'", select="content.n").rows == [2]


def test_without_hydration_content_of_others_is_null(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """Nothing is asked; what is kept is shown."""
    _, web = pair
    tenants.take()
    assert web.store.query("ns == 'infra'", select="content", hydrate=False).rows == [None]
    assert tenants.take() == []
    web.query("attributes.n == 1", all_namespaces=True)
    assert web.store.query("ns == 'infra'", select="content.of", hydrate=False).rows == ["infra"]


def test_content_that_grows_is_read_as_it_is_recorded(pair: tuple[Tenant, Tenant]) -> None:
    """Appended data has no checksum: its size decides, and it is never kept."""
    infra, web = pair
    infra.put("r", "one\n", name="log", content_type="text/plain", streaming=True)
    web.pull("infra")
    assert web.store.query("ns == 'infra' && name == 'log'", select="content").rows == ["one\n"]
    infra.router("r").append("log", "two\n")
    infra.publish()
    web.pull("infra")
    assert web.store.query("ns == 'infra' && name == 'log'", select="content").rows == ["one\ntwo\n"]


def test_binary_content_of_others_is_empty_as_ours_is(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """What is no text is not fetched at all."""
    infra, web = pair
    infra.put("r", b"\x00\xff", name="blob")
    web.pull("infra")
    tenants.take()
    assert web.store.query("ns == 'infra' && name == 'blob'", select="content").rows == [""]
    assert tenants.take() == []


def test_nothing_of_others_is_written_or_listed_by_reading_them(tenants: Tenants, pair: tuple[Tenant, Tenant]) -> None:
    """Whatever a query asks for, it only reads named objects."""
    _, web = pair
    tenants.take()
    web.pull()
    web.query("attributes.n == 1", all_namespaces=True)
    web.store.find("infra:router-r", "state")
    asked: list[Any] = tenants.take()
    assert {operation for operation, _ in asked} <= {"get", "get_if_changed", "get_stream", "list_level"}
    assert {key for operation, key in asked if operation == "list_level"} <= {""}
