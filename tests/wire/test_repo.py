"""`.swamp.yaml`: reading settings, and changing one block while every other byte stays."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import ConfigError, FormatError
from mire.model.instant import Instant
from mire.model.names import Uuid
from mire.testing.strategies import documents
from mire.wire.repo import (
    DatastoreBlock,
    decode_repo,
    encode_new_repo,
    renamespace_datastore,
    replace_datastore,
    retarget_datastore,
)
from mire.wire.yamltext import decode_yaml, encode_yaml

REPO_ID = Uuid("5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15")
NEW = {"type": "filesystem", "path": "/srv/data"}
BLOCK = b'datastore:\n  type: "filesystem"\n  path: "/srv/data"\n'


def block_of(data: bytes) -> DatastoreBlock:
    """The datastore block of a file that has one."""
    block = decode_repo(data).datastore
    assert block is not None
    return block


def test_settings_are_read() -> None:
    """The members mire uses are read, whatever else the file holds."""
    data = b"""
swampVersion: "2026.08.12.1"
repoId: "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15"
tools: [claude]
datastore:
  type: "@acme/blob-store"
  path: ~/x
  config: {container: lab-7}
  directories: [data, outputs]
  exclude: ["data/scratch/**"]
  hydrationStrategy: lazy
  namespace: greenhouse
  syncTimeoutMs: 5
  lockTimeoutMs: 6
"""
    assert decode_repo(data).repo_id == REPO_ID
    assert block_of(data) == DatastoreBlock(
        type="@acme/blob-store",
        path="~/x",
        config={"container": "lab-7", "hydrationStrategy": "lazy"},
        directories=("data", "outputs"),
        exclude=("data/scratch/**",),
        namespace="greenhouse",
        sync_timeout_ms=5,
        lock_timeout_ms=6,
    )


@pytest.mark.parametrize("data", [b"", b"# nothing\n", b"swampVersion: x\n", b"datastore: ~\nrepoId: null\n"])
def test_a_file_may_say_nothing(data: bytes) -> None:
    """Without settings there are none."""
    assert decode_repo(data).datastore is None
    assert decode_repo(data).repo_id is None


def test_a_block_may_say_little() -> None:
    """Only the type is needed."""
    assert block_of(b"datastore: {type: filesystem}") == DatastoreBlock(
        type="filesystem",
        path=None,
        config={},
        directories=None,
        exclude=None,
        namespace="",
        sync_timeout_ms=None,
        lock_timeout_ms=None,
    )


def test_the_legacy_s3_block_is_read() -> None:
    """`type: s3` is the extension's old name, and its settings stood beside it."""
    block = block_of(b"datastore: {type: s3, bucket: b, prefix: p, forcePathStyle: true, config: {prefix: q}}")
    assert block.type == "@swamp/s3-datastore"
    assert block.config == {"bucket": "b", "prefix": "q", "forcePathStyle": True}


def test_timeouts_may_stand_in_the_config() -> None:
    """The reference has its timeout in the config object; beside it wins, and zero is not nothing."""
    block = block_of(b"datastore: {type: x, config: {syncTimeoutMs: 7, lockTimeoutMs: 8}}")
    assert (block.sync_timeout_ms, block.lock_timeout_ms) == (7, 8)
    block = block_of(b"datastore: {type: x, syncTimeoutMs: 0, lockTimeoutMs: 9, config: {syncTimeoutMs: 7}}")
    assert (block.sync_timeout_ms, block.lock_timeout_ms) == (0, 9)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"[]", ".swamp.yaml"),
        (b"text", ".swamp.yaml"),
        (b"a: 1\na: 2", "'a'"),
        (b"\xff", "UTF-8"),
        (b"repoId: 5", "'repoId'"),
        (b"datastore: x", "'datastore'"),
        (b"datastore: []", "'datastore'"),
        (b"datastore: {}", "'type'"),
        (b"datastore: {path: x}", "'type'"),
        (b"datastore: {type: 5}", "'type'"),
        (b"datastore: {type: filesystem, path: 5}", "'path'"),
        (b"datastore: {type: x, config: []}", "'config'"),
        (b"datastore: {type: x, directories: data}", "'directories'"),
        (b"datastore: {type: x, directories: [1]}", "'directories'"),
        (b"datastore: {type: x, exclude: 'a'}", "'exclude'"),
        (b"datastore: {type: x, namespace: 5}", "'namespace'"),
    ],
)
def test_bad_settings_are_named(data: bytes, named: str) -> None:
    """What is wrong is a configuration error of one line that names it."""
    with pytest.raises(ConfigError) as caught:
        decode_repo(data)
    assert named in caught.value.message
    assert caught.value.message.isprintable()


def test_a_new_file_is_the_reference_s() -> None:
    """A new repository has the reference's three members in double quotes, and a datastore when one is named."""
    started = Instant("2026-05-17T08:30:02.417Z")
    plain = encode_new_repo(REPO_ID, started, None)
    assert plain == (
        b'swampVersion: "2026.08.12.1"\ninitializedAt: "2026-05-17T08:30:02.417Z"\n'
        b'repoId: "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15"\n'
    )
    assert encode_new_repo(REPO_ID, started, NEW) == plain + BLOCK
    assert decode_repo(plain).repo_id == REPO_ID


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", BLOCK),
        (b"# c\n", b"# c\n" + BLOCK),
        (b"a: 1\n", b"a: 1\n" + BLOCK),
        (b"a: 1", b"a: 1\n" + BLOCK),
        (b"a: 1\n\n# end\n", b"a: 1\n\n# end\n" + BLOCK),
        (b"datastore:\n  type: x\n", BLOCK),
        (b"datastore: {type: x, path: 'y'}", BLOCK),
        (b"datastore: ~\na: 1\n", BLOCK + b"a: 1\n"),
        (b"# c\n\ndatastore: # old\n  type: x\n# end", b"# c\n\n" + BLOCK + b"# end\n"),
        (
            b"# head\na: 1 # one\n\n# about it\ndatastore:\n  # inner\n  type: x\n\n  path: y # old\n\n# b\nb: [2]\n",
            b"# head\na: 1 # one\n\n# about it\n" + BLOCK + b"\n# b\nb: [2]\n",
        ),
        (
            b"a: 1\ndatastore:\n  type: x\n  config:\n    k: |\n      # text\n\n      more\nb: 2\n",
            b"a: 1\n" + BLOCK + b"b: 2\n",
        ),
        (
            b"a: |\n  datastore:\n    type: x\nb: {datastore: 1}\n",
            b"a: |\n  datastore:\n    type: x\nb: {datastore: 1}\n" + BLOCK,
        ),
        (b"a: 1\r\ndatastore:\r\n  type: x\r\nb: 2\r\n", b"a: 1\r\n" + BLOCK + b"b: 2\r\n"),
        (b'"datastore":\n  type: x\nb: 2\n', BLOCK + b"b: 2\n"),
        (b"---\na: 1\n...\n# after\n", b"---\na: 1\n" + BLOCK + b"...\n# after\n"),
        (b"---\ndatastore: {type: x}\n...\n", b"---\n" + BLOCK + b"...\n"),
        (b"\xef\xbb\xbfa: 1\n", b"\xef\xbb\xbfa: 1\n" + BLOCK),
        (b"a: '\xe2\x80\xa8'\ndatastore: {type: x}\nb: 2\n", b"a: '\xe2\x80\xa8'\n" + BLOCK + b"b: 2\n"),
        (b"a: &x 1\ndatastore: {type: x}\nb: *x\n", b"a: &x 1\n" + BLOCK + b"b: *x\n"),
    ],
    ids=ascii,
)
def test_one_block_changes_and_every_other_byte_stays(before: bytes, after: bytes) -> None:
    """The block is replaced or added; comments, blank lines, quotes and other keys are as they were."""
    assert replace_datastore(before, NEW) == after


@pytest.mark.parametrize(
    "data",
    [
        b"{a: 1}",
        b"{}",
        b"{datastore: {type: x}}",
        b"  a: 1\n  b: 2\n",
        b"a: |\n  no newline at the end",
        b"datastore: &d {type: x}\nb: *d\n",
        b"--- {a: 1}\n",
    ],
    ids=ascii,
)
def test_what_lines_cannot_express_is_refused(data: bytes) -> None:
    """A file whose block cannot be changed without touching the rest is left alone, and the block is shown."""
    with pytest.raises(ConfigError, match=r"write the block yourself: .'type': 'filesystem'"):
        replace_datastore(data, NEW)


@pytest.mark.parametrize("change", [replace_datastore, retarget_datastore])
@pytest.mark.parametrize("data", [b"a: 1\na: 2\n", b"[]", b"\xff", b"datastore: 5", b"a: 1\n---\nb: 2\n"])
def test_a_bad_file_is_not_changed(change: Callable[[bytes, dict[str, str]], bytes], data: bytes) -> None:
    """A file that cannot be read is refused, not overwritten."""
    with pytest.raises(ConfigError):
        change(data, NEW)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", BLOCK),
        (b"a: 1\ndatastore: ~\n", b"a: 1\n" + BLOCK),
        (b"datastore: {type: s3, bucket: b, prefix: p, region: r, endpoint: e, forcePathStyle: true}\n", BLOCK),
        (
            b"datastore:\n  namespace: green\n  type: x\n  path: /o\n  config: {a: 1}\n  exclude: [y]\n  z: 2\nb: 2\n",
            BLOCK + b'  namespace: "green"\n  exclude:\n    - "y"\n  z: 2\nb: 2\n',
        ),
        (
            b"datastore: {type: x, config: {bucket: b, syncTimeoutMs: 7, region: r, lockTimeoutMs: 8}}\n",
            BLOCK + b"  config:\n    syncTimeoutMs: 7\n    lockTimeoutMs: 8\n",
        ),
    ],
    ids=ascii,
)
def test_another_target_leaves_what_belongs_to_the_repository(before: bytes, after: bytes) -> None:
    """Pointing the datastore elsewhere keeps namespace, directories, exclude and what we do not know."""
    assert retarget_datastore(before, NEW) == after


def written_by_others(document: dict[str, Any], width: int) -> list[bytes]:
    """The document by PyYAML's emitter, unless that one writes something else than it was given."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=width, default_flow_style=False)
    try:
        is_same = decode_yaml(text.encode()) == document
    except FormatError:
        return []
    return [text.encode()] if is_same else []


@given(
    documents().map(lambda document: {f"k{key}": value for key, value in document.items()}),
    st.integers(0, 5),
    st.sampled_from([None, {"type": "x"}, {"type": "x", "config": {"a": [1, "# no comment", "l1\n\n# l3\n"]}}]),
    st.integers(10, 200),
)
def test_other_settings_are_equal_afterwards(
    others: dict[str, Any], place: int, old: dict[str, Any] | None, width: int
) -> None:
    """Whatever else a file holds, written by us or by another emitter, is the same after the change."""
    items = list(others.items())
    document = dict(items[:place] + ([("datastore", old)] if old else []) + items[place:])
    files = [encode_yaml(document).encode(), *written_by_others(document, width)] if document else [b""]
    for data in files:
        changed = replace_datastore(data, NEW)
        assert decode_yaml(changed) == {**others, "datastore": NEW}
        assert replace_datastore(changed, NEW) == changed


def test_a_target_may_say_more_than_where_it_is() -> None:
    """What a new target says about hydration or the namespace counts; what it does not mention stays."""
    before = b"datastore:\n  type: filesystem\n  namespace: green\n  hydrationStrategy: lazy\n  exclude: [logs]\n"
    target = {"type": "@acme/blob", "config": {"index": "sharded"}, "hydrationStrategy": "full"}
    block = decode_repo(retarget_datastore(before, target)).datastore
    assert block is not None
    assert (block.type, block.namespace, block.exclude) == ("@acme/blob", "green", ("logs",))
    assert block.config == {"index": "sharded", "hydrationStrategy": "full"}


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("{type: '@acme/blob', hydrationStrategy: full}", "full"),
        ("{type: '@acme/blob', config: {hydrationStrategy: full}}", "full"),
        ("{type: '@acme/blob', config: {hydrationStrategy: full}, hydrationStrategy: lazy}", "lazy"),
        ("{type: '@acme/blob'}", None),
    ],
)
def test_when_content_comes_stands_beside_the_configuration_or_in_it(text: str, strategy: str | None) -> None:
    """The reference writes it beside; in an environment variable it can only be inside."""
    block = decode_repo(f"datastore: {text}".encode()).datastore
    assert block is not None
    assert block.config.get("hydrationStrategy") == strategy


def test_a_namespace_is_set_and_taken_away_in_place() -> None:
    """Comments and other members stay; a file without a datastore gets one that says what was the case."""
    data = b'# mine\nrepoId: "r"\ndatastore:\n  type: filesystem\n  path: /mnt\n# after\nlogLevel: info\n'
    named = renamespace_datastore(data, "team-a")
    block = decode_repo(named).datastore
    assert block is not None
    assert (block.namespace, block.path) == ("team-a", "/mnt")
    assert named.startswith(b'# mine\nrepoId: "r"\n')
    assert named.endswith(b"# after\nlogLevel: info\n")
    again = decode_repo(renamespace_datastore(named, "")).datastore
    assert again is not None
    assert again.namespace == ""
    fresh = decode_repo(renamespace_datastore(b'repoId: "r"\n', "team-a")).datastore
    assert fresh is not None
    assert (fresh.type, fresh.path, fresh.namespace) == ("filesystem", ".swamp", "team-a")
