"""Bad input through the Python face: a typed error, one line, the value in it, and nothing written."""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire

Snapshot = Callable[[Path], dict[str, object]]

BAD_SEGMENTS: list[Any] = [
    "..",
    ".",
    "../n",
    "a/../b",
    "a/b",
    "/etc",
    "a..b",
    "a\\b",
    "nul\0",
    "\0",
    ".lock",
    ".LOCK",
    ".namespace.json",
    "_catalog.db",
    "_catalog.db-x",
    "",
    " ",
    "\ufeff",
    "new\nline",
    "\x7f",
    "x" * 256,
    "é" * 128,
    "x" * 100_000,
    "\ud800",
    "a\udcffb",
    None,
    7,
    True,
    b"bytes",
    ["n"],
    {"n": 1},
]
BAD_NAMES: list[Any] = [*BAD_SEGMENTS, "latest", "LATEST", "LaTeSt"]
BAD_TYPES: list[Any] = [
    "..",
    ".",
    "a/../b",
    "../a",
    "a/..",
    "./a",
    "a\\b",
    "a\0b",
    "",
    " ",
    "/",
    "::",
    "a\nb",
    "x" * 256,
    "a/" + "é" * 128,
    "\ud800",
    None,
    7,
    b"a",
    ["a"],
]


def _id(value: object) -> str:
    return ascii(value)[:16]


def check(error: mire.MireError, value: object) -> None:
    """A message is one line that shows the value."""
    assert "\n" not in error.message
    shown = ascii(value) if isinstance(value, bytes) else repr(value)
    assert shown[:40] in error.message or shown[1:40] in error.message, error.message
    assert len(error.message) < 500


def kind_of(call: Callable[[], object]) -> str | None:
    """The kind of the error a call raises, or None when it raises none."""
    try:
        call()
    except mire.MireError as error:
        return error.kind
    return None


def refused(call: Callable[[], object], value: object) -> None:
    """The call raises `InputError`, and its message shows the value."""
    with pytest.raises(mire.InputError) as caught:
        call()
    check(caught.value, value)


@pytest.mark.parametrize("value", BAD_NAMES, ids=_id)
def test_bad_data_names(store: mire.Store, repo: Path, snapshot: Snapshot, value: Any) -> None:
    """No method takes one, and the directory does not even become a repository."""
    model = store.model("t", "i")
    calls: list[Callable[[], object]] = [
        lambda: model.put(value, "x"),
        lambda: model.append(value, "x"),
        lambda: model.get(value),
        lambda: model.get(value, 1),
        lambda: model.latest(value),
        lambda: model.versions(value),
        lambda: model.history(value),
        lambda: model.delete(value),
        lambda: model.delete(value, 1),
        lambda: model.mark_deleted(value),
        lambda: model.rename(value, "m"),
        lambda: model.rename("m", value),
    ]
    for call in calls:
        refused(call, value)
    assert snapshot(repo) == {}


@pytest.mark.parametrize("value", BAD_SEGMENTS, ids=_id)
def test_bad_model_ids(store: mire.Store, value: Any) -> None:
    """A model with a bad id cannot even be named."""
    refused(lambda: store.model("t", value), value)


@pytest.mark.parametrize("value", BAD_TYPES, ids=_id)
def test_bad_types(store: mire.Store, repo: Path, snapshot: Snapshot, value: Any) -> None:
    """A bad type is refused wherever a type is taken."""
    shown = value.removeprefix("a/") if isinstance(value, str) and len(value) > 100 else value
    refused(lambda: store.model(value, "i"), shown)
    refused(lambda: store.outputs.start(value, "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603", "m"), shown)
    if value is not None:
        refused(lambda: store.models(value), shown)
        refused(lambda: store.outputs.list(value), shown)
    assert snapshot(repo) == {}


@pytest.mark.parametrize("value", [0, -1, 2**53, True, "1", 1.0, b"1", [1]], ids=repr)
def test_bad_versions(store: mire.Store, value: Any) -> None:
    """A version is a whole number from 1."""
    model = store.model("t", "i")
    model.put("n", "x")
    refused(lambda: model.get("n", value), value)
    refused(lambda: model.delete("n", value), value)
    assert model.versions("n") == [1]


BAD_OPTIONS: list[tuple[dict[str, Any], object]] = [
    ({"lifetime": "forever"}, "forever"),
    ({"lifetime": "5x"}, "5x"),
    ({"lifetime": "1.5d"}, "1.5d"),
    ({"lifetime": "٣d"}, "٣d"),
    ({"lifetime": ""}, ""),
    ({"lifetime": 7}, 7),
    ({"lifetime": None}, None),
    ({"version_policy": 0}, 0),
    ({"version_policy": -1}, -1),
    ({"version_policy": True}, True),
    ({"version_policy": 1.5}, 1.5),
    ({"version_policy": "0d"}, "0d"),
    ({"version_policy": "infinite"}, "infinite"),
    ({"version_policy": "7"}, "7"),
    ({"version_policy": None}, None),
    ({"content_type": " "}, " "),
    ({"content_type": 7}, 7),
    ({"tags": {"a": 1}}, 1),
    ({"tags": {"a": None}}, None),
    ({"tags": {7: "a"}}, 7),
    ({"tags": {"": "a"}}, ""),
    ({"tags": {"a": "x\0y"}}, "x\0y"),
    ({"owner": "nobody"}, "nobody"),
    ({"owner": "robot:x"}, "robot:x"),
    ({"owner": "manual: "}, "manual: "),
    ({"owner": ""}, ""),
    ({"tags": 7}, 7),
    ({"tags": "abc"}, "abc"),
    ({"tags": ["a"]}, ["a"]),
    ({"owner": mire.Owner(owner_type="robot", owner_ref="x")}, "robot"),
    ({"owner": mire.Owner(owner_type="manual", owner_ref="")}, ""),
    ({"owner": mire.Owner(owner_type="manual", owner_ref="x", workflow_id="x")}, "x"),
    ({"streaming": "yes"}, "yes"),
    ({"owner": 7}, 7),
    ({"tags": {"a": "\ud800"}}, "\ud800"),
    ({"tags": {"\ud800": "a"}}, "\ud800"),
    ({"content_type": "\ud800"}, "\ud800"),
    ({"owner": "manual:\ud800"}, "\ud800"),
]


@pytest.mark.parametrize(("options", "value"), BAD_OPTIONS, ids=[ascii(options)[:60] for options, _ in BAD_OPTIONS])
def test_bad_options_of_put(
    store: mire.Store, repo: Path, snapshot: Snapshot, options: dict[str, Any], value: object
) -> None:
    """A wrong type or value in any option is refused before anything is written."""
    store.model("t", "i").put("other", "x")
    before = snapshot(repo)
    with pytest.raises(mire.InputError) as caught:
        store.model("t", "i").put("n", "content", **options)
    assert snapshot(repo) == before
    check(caught.value, value)


def test_a_version_policy_beyond_what_others_can_count(store: mire.Store) -> None:
    """A number above 2^53 would be read as another number by the reference, so it is refused."""
    refused(lambda: store.model("t", "i").put("n", "x", version_policy=2**53 + 1), 2**53 + 1)


@pytest.mark.parametrize("name", [7, "\ud800"], ids=ascii)
def test_a_bad_model_name(store: mire.Store, repo: Path, snapshot: Snapshot, name: Any) -> None:
    """The display name of a model becomes a tag, so it has to be text."""
    with pytest.raises(mire.InputError):
        store.model("t", "i", name=name).put("n", "x")
    assert snapshot(repo) == {}


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> dict[str, Any]:
    """A dict that holds itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


BAD_CONTENT: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "int": lambda: 7,
    "float": lambda: 1.5,
    "tuple": lambda: (1, 2),
    "set": lambda: {1},
    "object": object,
    "iterator": lambda: iter([b"x"]),
    "surrogate text": lambda: "\ud800",
    "dict with object": lambda: {"a": object()},
    "dict with bytes": lambda: {"a": b"x"},
    "dict with nan": lambda: {"a": float("nan")},
    "dict with infinity": lambda: [float("inf")],
    "dict with surrogate": lambda: {"a": "\ud800"},
    "dict with tuple key": lambda: {(1, 2): 3},
    "circular dict": circular,
    "deep list": lambda: nested(100_000),
}


@pytest.mark.parametrize("make", BAD_CONTENT.values(), ids=BAD_CONTENT)
def test_content_that_cannot_be_written(
    store: mire.Store, repo: Path, snapshot: Snapshot, make: Callable[[], Any]
) -> None:
    """Content of the wrong kind is refused with its kind, and not even the repository is made."""
    content = make()
    for call in (
        lambda: store.model("t", "i").put("n", content),
        lambda: store.model("t", "i").append("n", content),
    ):
        with pytest.raises(mire.InputError) as caught:
            call()
        assert "\n" not in caught.value.message
        assert len(caught.value.message) < 500
    assert snapshot(repo) == {}


class Failing(io.RawIOBase):
    """A stream that gives something and then breaks."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error: Exception | None = error
        self._given = False

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Two bytes, then the error."""
        if self._given and self._error is not None:
            raise self._error
        self._given = True
        buffer[:2] = b"ab"
        return 2


@pytest.mark.parametrize("has_data", [False, True])
@pytest.mark.parametrize("content", ["text", ""])
def test_a_file_opened_as_text(
    store: mire.Store, repo: Path, tmp_path: Path, snapshot: Snapshot, content: str, *, has_data: bool
) -> None:
    """A text-mode file is refused with the way to open it, before anything is written."""
    if has_data:
        store.model("t", "i").put("n", "old", streaming=True)
    before = snapshot(repo)
    (tmp_path / "source").write_text(content)
    for method in ("put", "append"):
        with (tmp_path / "source").open(encoding="utf-8") as file, pytest.raises(mire.MireError) as caught:
            getattr(store.model("t", "i"), method)("n", file)
        assert snapshot(repo) == before
        if method == "put" or has_data:
            assert isinstance(caught.value, mire.InputError)
            assert "binary mode" in caught.value.message
            assert "raw" not in caught.value.message


def test_text_in_memory_as_a_file(store: mire.Store, repo: Path, snapshot: Snapshot) -> None:
    """A StringIO is no file of bytes either."""
    with pytest.raises(mire.InputError, match="binary mode"):
        store.model("t", "i").put("n", io.StringIO("text"))
    assert snapshot(repo) == {}


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("broken"), RuntimeError("broken")])
def test_a_source_that_breaks_leaves_the_old_state(store: mire.Store, error: Exception) -> None:
    """Whatever a source raises halfway, no version appears, the lock is free and the next put works."""
    model = store.model("t", "i")
    model.put("n", "old")
    with pytest.raises((mire.MireError, RuntimeError)):
        model.put("n", io.BufferedReader(Failing(error)))
    assert model.versions("n") == [1]
    assert store.locks() == []
    model.put("n", "new")
    assert model.get("n").text() == "new"


def test_a_broken_source_is_named_as_such(store: mire.Store, tmp_path: Path) -> None:
    """An error while reading the source does not blame the file that is being written."""
    with pytest.raises(mire.MireError) as caught:
        store.model("t", "i").put("n", io.BufferedReader(Failing(OSError(5, "Input/output error"))))
    assert "/raw" not in caught.value.message


def test_paths_that_cannot_be_read(store: mire.Store, repo: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    """A missing path, a directory and a path with NUL are refused by name, and nothing is written."""
    model = store.model("t", "i")
    with pytest.raises(mire.NotFoundError, match="missing"):
        model.put("n", tmp_path / "missing")
    with pytest.raises(mire.InputError):
        model.put("n", Path("a\0b"))
    assert snapshot(repo) == {}
    with pytest.raises(mire.InputError, match=tmp_path.name):
        model.put("n", tmp_path)
    assert snapshot(repo) == {}


def test_a_path_of_many_segments(store: mire.Store, repo: Path, snapshot: Snapshot) -> None:
    """A type whose segments fit but whose path does not is refused before a directory exists."""
    with pytest.raises(mire.InputError, match="too long"):
        store.model("/".join(["x" * 250] * 20), "i").put("n", "x")
    assert snapshot(repo) == {}


@pytest.mark.parametrize("method", ["", " ", 7, None, "\ud800"], ids=ascii)
def test_a_bad_method_of_a_deletion(store: mire.Store, method: Any) -> None:
    """The method that ended a thing is text."""
    model = store.model("t", "i")
    model.put("n", "x")
    with pytest.raises(mire.InputError):
        model.mark_deleted("n", method=method)
    assert model.versions("n") == [1]


@pytest.mark.parametrize(
    "options",
    [
        {"lock_timeout": -1},
        {"lock_timeout": float("nan")},
        {"lock_timeout": 1e9},
        {"lock_timeout": "soon"},
        {"datastore": "nonsense"},
        {"datastore": "filesystem:"},
        {"datastore": "filesystem:a\0b"},
        {"datastore": "s3:Not_A_Bucket"},
    ],
    ids=ascii,
)
def test_bad_options_of_open(repo: Path, snapshot: Snapshot, options: dict[str, Any]) -> None:
    """Settings given by the caller are checked like those of a file."""
    with pytest.raises(mire.ConfigError) as caught:
        mire.open(repo, **options)
    assert "\n" not in caught.value.message
    assert snapshot(repo) == {}


def places() -> Iterator[tuple[str, str]]:
    """Every place of a version that could be a link, and what it is called."""
    yield "data", ".swamp/data"
    yield "type", ".swamp/data/t"
    yield "model", ".swamp/data/t/i"
    yield "name", ".swamp/data/t/i/n"
    yield "version", ".swamp/data/t/i/n/2"
    yield "raw", ".swamp/data/t/i/n/2/raw"
    yield "metadata", ".swamp/data/t/i/n/2/metadata.yaml"


OPERATIONS: dict[str, Callable[[mire.Model], object]] = {
    "get": lambda model: model.get("n").bytes(),
    "get version": lambda model: model.get("n", 2).bytes(),
    "put": lambda model: model.put("n", "three"),
    "append": lambda model: model.append("n", "more"),
    "rename": lambda model: model.rename("n", "new"),
    "mark": lambda model: model.mark_deleted("n"),
}


@pytest.fixture
def linked(store: mire.Store, repo: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Move a place out of the store and leave a link to it."""
    model = store.model("t", "i")
    model.put("n", "one", streaming=True)
    model.put("n", "two", streaming=True)
    model.put("other", "x")

    def move(place: str) -> Path:
        outside = tmp_path / "outside"
        (repo / place).rename(outside)
        (repo / place).symlink_to(outside)
        return outside

    return move


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("place", dict(places()).values(), ids=dict(places()))
def test_a_link_out_of_the_store_is_refused(
    store: mire.Store,
    tmp_path: Path,
    snapshot: Snapshot,
    linked: Callable[[str], Path],
    place: str,
    operation: str,
) -> None:
    """Neither reads nor writes go through it; only a put may go on beside an old content it need not touch."""
    outside = linked(place)
    before = snapshot(tmp_path)
    if operation == "put" and place.endswith("/raw"):
        assert store.model("t", "i").put("n", "three").version == 3
        after = snapshot(tmp_path)
        assert {path: after[path] for path in before if path.startswith("outside")} == {
            path: data for path, data in before.items() if path.startswith("outside")
        }
        return
    with pytest.raises(mire.InputError) as caught:
        OPERATIONS[operation](store.model("t", "i"))
    assert caught.value.kind == "outside"
    assert f"to '{outside}" in caught.value.message
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("version", [None, 1, 2])
@pytest.mark.parametrize("place", dict(places()).values(), ids=dict(places()))
def test_deleting_never_reaches_through_a_link(
    store: mire.Store,
    tmp_path: Path,
    snapshot: Snapshot,
    linked: Callable[[str], Path],
    place: str,
    version: int | None,
) -> None:
    """Whether a deletion is refused or removes the link: what the link leads to stays."""
    outside = linked(place)
    before = outside.read_bytes() if outside.is_file() else snapshot(outside)
    assert kind_of(lambda: store.model("t", "i").delete("n", version)) in (None, "outside")
    assert (outside.read_bytes() if outside.is_file() else snapshot(outside)) == before


def test_a_marker_that_links_out_is_not_read_or_written_through(store: mire.Store, repo: Path, tmp_path: Path) -> None:
    """`latest` as a link means its text, never the file behind it."""
    model = store.model("t", "i")
    model.put("n", "one")
    model.put("n", "two")
    outside = tmp_path / "outside"
    outside.write_bytes(b"1")
    marker = repo / ".swamp/data/t/i/n/latest"
    marker.unlink()
    marker.symlink_to(outside)
    assert model.get("n").version == 2
    assert model.put("n", "three").version == 3
    assert (outside.read_bytes(), marker.is_symlink(), marker.read_bytes()) == (b"1", False, b"3")


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_lock_that_links_out_is_refused(
    store: mire.Store, repo: Path, tmp_path: Path, snapshot: Snapshot, *, is_dangling: bool
) -> None:
    """A lock file is created in the store or not at all."""
    store.model("t", "i").put("n", "one")
    if not is_dangling:
        (tmp_path / "outside").write_text("{}")
    (repo / ".swamp/data/t/i/.lock").symlink_to(tmp_path / "outside")
    before = snapshot(tmp_path)
    with pytest.raises(mire.InputError):
        store.model("t", "i").put("n", "two")
    assert snapshot(tmp_path) == before


DEFINITION = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
RECORDS: dict[str, tuple[str, Callable[[mire.Store], object]]] = {
    "outputs": ("outputs", lambda store: store.outputs.start("t", DEFINITION, "create")),
    "method": ("outputs/t/create", lambda store: store.outputs.start("t", DEFINITION, "create")),
    "runs": ("workflow-runs", lambda store: store.runs.start(DEFINITION, "sweep")),
    "workflow": (f"workflow-runs/{DEFINITION}", lambda store: store.runs.start(DEFINITION, "sweep")),
    "audit": ("audit", lambda store: store.audit.command("x", timestamp="2026-05-17T10:00:00.000Z")),
    "audit file": (
        "audit/commands-2026-05-17.jsonl",
        lambda store: store.audit.command("x", timestamp="2026-05-17T10:00:00.000Z"),
    ),
}


@pytest.mark.parametrize(("place", "write"), RECORDS.values(), ids=RECORDS)
def test_records_do_not_go_through_links(
    store: mire.Store,
    repo: Path,
    tmp_path: Path,
    snapshot: Snapshot,
    place: str,
    write: Callable[[mire.Store], object],
) -> None:
    """A directory or file of records that links out is refused for writing and shows nothing for reading."""
    write(store)
    outside = tmp_path / "outside"
    (repo / ".swamp" / place).rename(outside)
    (repo / ".swamp" / place).symlink_to(outside)
    before = snapshot(tmp_path)
    with pytest.raises(mire.InputError):
        write(store)
    assert snapshot(tmp_path) == before
    listings: list[Callable[[], Any]] = [store.outputs.list, store.runs.list, store.audit.list]
    for listing in listings:
        assert kind_of(listing) == "outside" or list(listing()) == []


def test_the_references_summary_is_not_removed_through_a_link(repo: Path, tmp_path: Path) -> None:
    """Saving a run to a shared datastore does not delete a file outside the repository."""
    outside = tmp_path / "outside" / DEFINITION
    outside.mkdir(parents=True)
    (outside / ".runs-index.json").write_text("{}")
    (repo / ".swamp").mkdir()
    (repo / ".swamp/workflow-runs").symlink_to(tmp_path / "outside")
    (tmp_path / "share").mkdir()
    store = mire.open(repo, datastore=f"filesystem:{tmp_path}/share")
    assert kind_of(lambda: store.runs.start(DEFINITION, "sweep")) in (None, "outside")
    assert (outside / ".runs-index.json").read_text() == "{}"


def test_links_inside_the_store_are_harmless(store: mire.Store, repo: Path) -> None:
    """A link that stays inside, and a store that is itself reached through one, work."""
    store.model("t", "i").put("n", "one")
    os.symlink("i", repo / ".swamp/data/t/alias")
    assert store.model("t", "alias").get("n").text() == "one"
    assert [model.id for model in store.models()] == ["i"]


def test_a_directory_in_the_place_of_a_file(store: mire.Store, repo: Path) -> None:
    """A stray directory where a file must be is told by name, whichever file it is."""
    model = store.model("t", "i")
    for name in ("raw", "metadata.yaml"):
        model.put(name, "x")
        path = repo / f".swamp/data/t/i/{name}/1/{name}"
        path.unlink()
        path.mkdir()
        with pytest.raises(mire.MireError) as caught:
            model.get(name).bytes()
        assert "\n" not in caught.value.message


def test_a_file_in_the_place_of_a_directory(store: mire.Store, repo: Path, snapshot: Snapshot) -> None:
    """A stray file where a directory must be stops the write with its name, and stays."""
    model = store.model("t", "i")
    model.put("n", "x")
    (repo / ".swamp/data/t/j").write_text("a file")
    (repo / ".swamp/data/t/i/m").write_text("a file")
    before = snapshot(repo)
    with pytest.raises(mire.FormatError, match="in the way"):
        store.model("t", "j").put("n", "x")
    with pytest.raises(mire.FormatError, match="in the way"):
        model.put("m", "x")
    assert snapshot(repo) == before
    with pytest.raises(mire.NotFoundError):
        store.model("t", "j").get("n")


def test_errors_are_values(store: mire.Store) -> None:
    """Each error has its class, kind, exit code and names, and is also the Python error one would expect."""
    model = store.model("t", "i")
    with pytest.raises(LookupError) as missing:
        model.get("n")
    with pytest.raises(ValueError, match=r"'\.\.'") as bad:
        model.get("..")
    assert isinstance(missing.value, mire.NotFoundError)
    assert missing.value.document() == {
        "kind": "not_found",
        "message": missing.value.message,
        "exit": 3,
        "modelType": "t",
        "modelId": "i",
        "name": "n",
    }
    assert isinstance(bad.value, mire.InputError)
    assert (bad.value.kind, bad.value.names["value"]) == ("bad_name", "'..'")


def test_values_are_not_changed_by_a_put(store: mire.Store) -> None:
    """Tags and owner given by the caller stay the caller's."""
    tags = {"env": "prod"}
    owner = mire.Owner(owner_type="manual", owner_ref="me")
    store.model("t", "i").put("n", "x", tags=tags, owner=owner)
    assert tags == {"env": "prod"}
    assert owner == replace(owner)
