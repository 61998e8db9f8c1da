"""The fast way through metadata gives what the full reader gives, or declines."""

from dataclasses import replace
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import FormatError
from mire.model.artifact import Metadata
from mire.testing.strategies import metadata as any_metadata
from mire.wire.metadata import _decode_any, encode_metadata
from mire.wire.metadatafast import TXN, decode_usual

GOLDEN = sorted((Path(__file__).parent.parent / "golden" / "tree" / "data").rglob("metadata.yaml"))


def full(text: str) -> Metadata | FormatError:
    """What the full reader makes of it."""
    try:
        return _decode_any(text.encode())
    except FormatError as error:
        return error


def check(text: str) -> bool:
    """Compare both; whether the fast one took it."""
    fast = decode_usual(text)
    if fast is not None:
        found = full(text)
        assert fast == found
        assert repr(fast) == repr(found)
    return fast is not None


@given(any_metadata())
def test_agrees_on_what_we_write(found: Metadata) -> None:
    """Anything our encoder can say."""
    check(encode_metadata(found).decode())


@given(any_metadata(), st.one_of(st.text(max_size=12), st.from_regex(r"[\w.:-]{1,12}", fullmatch=True)))
def test_agrees_on_a_version_of_a_transaction(found: Metadata, said: str) -> None:
    """The one member of ours that the reference does not know, with any value; the usual ones are taken."""
    check(encode_metadata(replace(found, extra={TXN: said})).decode())
    assert check(f"{USUAL}{TXN}: 'drift-report:7:0'\n")


USUAL = encode_metadata(_decode_any(GOLDEN[0].read_bytes())).decode()


@given(
    st.integers(0, len(USUAL.splitlines()) - 1),
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            ["true", "null", "Null", "1e5", "7e10", "0d", "5d", "'", "''", "1", "01", "0x1", "a: b", "a #b"]
        ),
        st.from_regex(r"'[a-z0-9 ]{0,8}'", fullmatch=True),
    ),
)
def test_agrees_on_any_changed_line(place: int, value: str) -> None:
    """One member of a usual document replaced by anything."""
    lines = USUAL.splitlines()
    lines[place] = f"{lines[place].partition(':')[0]}: {value}"
    check("\n".join(lines) + "\n")


@given(
    st.lists(
        st.tuples(
            st.one_of(st.text("aT-_ '", max_size=3), st.sampled_from(["type", "true", "Null", "a" * 99, "a" * 1024])),
            st.one_of(st.text("aZ0'~# :-", max_size=6), st.sampled_from(["'it''s'", "'a b'", "true", "word-1", "1"])),
        ),
        max_size=4,
    )
)
def test_agrees_on_any_tags(tags: list[tuple[str, str]]) -> None:
    """Tags in any form: plain, quoted, twice under one key, with words that are no text."""
    head, _, rest = USUAL.partition("tags:\n")
    lines = "".join(f"  {key}: {value}\n" for key, value in tags)
    check(f"{head}tags:\n  type: 'x'\n{lines}{rest[rest.index('ownerDefinition:') :]}")


@given(any_metadata())
def test_agrees_on_what_others_write(found: Metadata) -> None:
    """The same documents from an encoder that quotes only what it must."""
    document = yaml.safe_load(encode_metadata(found))
    check(yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=10_000))


def test_takes_what_mire_writes() -> None:
    """Our own form of all golden files is taken."""
    ours = [encode_metadata(_decode_any(path.read_bytes())).decode() for path in GOLDEN]
    taken = [check(text) for text in ours]
    assert sum(taken) >= len(taken) * 0.5  # the rest has names beyond ASCII words
