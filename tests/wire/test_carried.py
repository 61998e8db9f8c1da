"""The journal of a setup: what is written is read, and what is torn says nothing."""

from hypothesis import given
from hypothesis import strategies as st

from mire.model.row import FileIdentity
from mire.wire.carried import CarriedFile, decode_carried, encode_carried

NUMBERS = st.integers(min_value=0, max_value=2**64 - 1)
FILES = st.builds(
    CarriedFile,
    rel=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    original=st.none() | st.builds(FileIdentity, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
)


@given(st.lists(st.lists(FILES)))
def test_the_last_word_about_a_path_counts(batches: list[list[CarriedFile]]) -> None:
    """Batches are lines; of a path that was carried again the last one is known."""
    wanted = {each.rel: each for batch in batches for each in batch}
    assert decode_carried(b"".join(map(encode_carried, batches))) == wanted


@given(st.lists(FILES, min_size=1), st.data())
def test_a_torn_line_says_nothing(batch: list[CarriedFile], data: st.DataObject) -> None:
    """Whatever is left of a line whose writer died, the lines before it are believed, and those after it."""
    line = encode_carried(batch)
    torn = line[: data.draw(st.integers(min_value=0, max_value=len(line) - 2))]
    known = CarriedFile(rel="data/a", original=None, sha256="0" * 64)
    assert decode_carried(encode_carried([known]) + torn + b"\n" + encode_carried([known])) == {"data/a": known}


@given(st.binary())
def test_any_bytes_are_a_journal(data: bytes) -> None:
    """Garbage is no error: it costs a comparison of files."""
    decode_carried(data)
