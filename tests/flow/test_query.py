"""Queries answer what a reader of every file would answer."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.errors import ConfigError, FormatError, InputError


@pytest.fixture
def filled(store: mire.Store) -> mire.Store:
    """Networks of two environments, some with history, a log, and something binary."""
    for number in range(6):
        model = store.model("aws/ec2/vpc", f"vpc-{number}", name=f"net-{number}")
        tags = {"env": "prod" if number % 2 else "test"}
        model.put("state", {"cidr": f"10.{number}.0.0/16", "n": number}, tags=tags)
        if number < 2:
            model.put("state", {"cidr": f"192.168.{number}.0/24", "n": number}, tags=tags)
    store.model("svc", "web").put("log", "started\nready\n", content_type="text/plain", tags={"team a": "x"})
    store.model("svc", "web").put("blob", b"\x00\xff")
    return store


def ids(rows: Any) -> list[str]:
    """The model ids of an answer, sorted."""
    return sorted(row["modelId"] for row in rows)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("modelType == 'aws/ec2/vpc'", [f"vpc-{n}" for n in range(6)]),
        ("tags.env == 'prod'", ["vpc-1", "vpc-3", "vpc-5"]),
        ("tags.env == 'prod' && modelId != 'vpc-3'", ["vpc-1", "vpc-5"]),
        ("!(tags.env == 'prod')", ["vpc-0", "vpc-2", "vpc-4"]),
        ("tags['team a'] == 'x'", ["web"]),
        ("!has(tags.env)", ["web", "web"]),
        ("attributes.cidr.startsWith('10.')", ["vpc-2", "vpc-3", "vpc-4", "vpc-5"]),
        ("attributes.n >= 4 && tags.env == 'prod'", ["vpc-5"]),
        ("attributes.cidr.startsWith('192.') || tags.env == 'nowhere'", ["vpc-0", "vpc-1"]),
        ("content.contains('ready') && dataType == 'file'", ["web"]),
        ("version == 1 && attributes.n < 2", ["vpc-0", "vpc-1"]),
        ("!isLatest", ["vpc-0", "vpc-1"]),
        ("modelName in ['net-1', 'net-9']", ["vpc-1"]),
        ("size > 1000000", []),
    ],
)
def test_answers(filled: mire.Store, predicate: str, expected: list[str]) -> None:
    """Predicates on metadata, tags and content, translated or evaluated."""
    assert ids(filled.query(predicate)) == expected


def test_history_is_opened_by_mention_or_by_request(filled: mire.Store) -> None:
    """Only the latest versions are looked at unless versions are asked for."""
    assert len(filled.query("modelId == 'vpc-0'")) == 1
    assert len(filled.query("modelId == 'vpc-0' && version > 0")) == 2
    assert len(filled.query("modelId == 'vpc-0'", history=True)) == 2


def test_pages_and_order(filled: mire.Store) -> None:
    """Pages of an ordered answer fit together, with and without something left to evaluate."""
    for predicate in ("modelType == 'aws/ec2/vpc'", "modelType == 'aws/ec2/vpc' && attributes.n >= 0"):
        whole = [row["modelId"] for row in filled.query(predicate, order_by="modelId desc")]
        assert whole == [f"vpc-{n}" for n in (5, 4, 3, 2, 1, 0)]
        pages = [filled.query(predicate, order_by="modelId desc", limit=4, offset=offset) for offset in (0, 4)]
        assert [row["modelId"] for page in pages for row in page] == whole
        assert [page.is_limited for page in pages] == [True, False]


@pytest.mark.parametrize("predicate", ["has(tags.env) || true", "attributes.n >= 0 || true"])
@pytest.mark.parametrize("order", ["createdAt desc", "size, modelId desc", "name desc, version desc", "streaming"])
def test_pages_by_cursor(filled: mire.Store, predicate: str, order: str) -> None:
    """Going on after each page's cursor gives every row once, in order, also when rows come and go in between."""
    whole = [(row["modelId"], row["name"]) for row in filled.query(predicate, order_by=order)]
    found, cursor = [], None
    for _ in range(len(whole)):
        page = filled.query(predicate, order_by=order, limit=3, cursor=cursor)
        found += [(row["modelId"], row["name"]) for row in page]
        cursor = page.cursor
        assert page.is_limited == (cursor is not None)
        if cursor is None:
            break
        if len(found) == 3:
            kind = "svc" if found[0][0] == "web" else "aws/ec2/vpc"
            filled.model(kind, found[0][0]).delete(found[0][1])
    assert found == whole


@pytest.mark.parametrize(
    ("cursor", "reason"), [("x", "none of ours"), ("W10", "none of ours"), ("é", "none of ours"), ("", "none of ours")]
)
def test_a_text_that_is_no_cursor_is_refused(filled: mire.Store, cursor: str, reason: str) -> None:
    """Nothing is read for a cursor that cannot be one."""
    with pytest.raises(InputError, match=reason):
        filled.query("true", cursor=cursor)


def test_a_cursor_belongs_to_its_order(filled: mire.Store) -> None:
    """A cursor of another order, or beside an offset, is refused."""
    cursor = filled.query("true", order_by="name", limit=1).cursor
    with pytest.raises(InputError, match="another order"):
        filled.query("true", order_by="name desc", cursor=cursor)
    with pytest.raises(InputError, match="both given"):
        filled.query("true", order_by="name", cursor=cursor, offset=1)


def test_rows_are_read_when_asked_for(filled: mire.Store) -> None:
    """An answer is as of when it is read, iterating does not keep rows, and the first row needs no others."""
    answer = filled.query("modelType == 'aws/ec2/vpc' && attributes.n >= 0", order_by="modelId")
    filled.model("aws/ec2/vpc", "vpc-0").delete("state")
    assert next(iter(answer))["modelId"] == "vpc-1"
    filled.model("aws/ec2/vpc", "vpc-1").delete("state")
    assert len(answer) == len(list(answer)) == 4
    filled.model("aws/ec2/vpc", "vpc-2").delete("state")
    assert answer[0]["modelId"] == "vpc-2"


def test_selected_values(filled: mire.Store) -> None:
    """A second expression says what is shown of each record; what it misses is null."""
    found = filled.query("has(tags.env)", select="tags.env + ' ' + modelId", order_by="modelId", limit=2)
    assert found.rows == ["test vpc-0", "prod vpc-1"]
    assert filled.query("modelId == 'web' && name == 'log'", select="attributes.none").rows == [None]


def test_a_renamed_name_answers_under_its_new_name(filled: mire.Store) -> None:
    """The tombstone is there for those who ask for it."""
    filled.model("aws/ec2/vpc", "vpc-5").rename("state", "status")
    rows = filled.query("modelId == 'vpc-5' && lifecycle == 'active'")
    assert [row["name"] for row in rows] == ["status"]


def test_problems_are_reported_not_swallowed(filled: mire.Store) -> None:
    """Rows on which a predicate fails are named; with strict they are an error, and so are missing keys."""
    answer = filled.query("attributes.n.startsWith('x')")
    assert answer.rows == []
    assert len(answer.problems) == 6
    for predicate in ("attributes.n.startsWith('x')", "attributes.none == 1"):
        strict = filled.query(predicate, strict=True)
        with pytest.raises(InputError):
            _ = strict.rows
    assert filled.query("attributes.none == 1").problems == []


def test_damaged_content_is_an_error_not_a_missing_row(filled: mire.Store, repo: Path) -> None:
    """An answer that would need damaged content is refused."""
    (repo / ".swamp/data/aws/ec2/vpc/vpc-3/state/1/raw").write_bytes(b"{}")
    assert len(filled.query("modelId == 'vpc-3'")) == 1
    answer = filled.query("modelId == 'vpc-3' && attributes.n == 3")
    with pytest.raises(FormatError):
        list(answer)


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": True}, {"offset": -1}, {"order_by": "nothing"}])
def test_bad_pages_are_refused(filled: mire.Store, options: dict[str, Any]) -> None:
    """Limits, offsets and orders are checked."""
    with pytest.raises(InputError):
        filled.query("true", **options)


def test_frames_need_their_package(filled: mire.Store) -> None:
    """Answers become data frames where the package is installed; elsewhere the error says what to install."""
    answer = filled.query("modelType == 'svc'")
    for convert, package in ((answer.to_arrow, "pyarrow"), (answer.to_pandas, "pandas")):
        if importlib.util.find_spec(package):
            assert len(convert()) == 2
        else:
            with pytest.raises(ConfigError, match=package):
                convert()
