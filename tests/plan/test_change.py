"""The change test: size, then times, then content; and what an absent file means."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.model.base import BaseRow
from mire.model.mark import MarkKind
from mire.model.row import FileIdentity
from mire.plan.change import RACY_NS, Change, absent_of, change_of, numbers_of, paired

SECOND = 10**9
MTIME, CTIME, LOOKED, NOW = 100 * SECOND, 101 * SECOND, 110 * SECOND, 120 * SECOND
FILE = FileIdentity(MTIME, CTIME, 3, 42)
BASE = BaseRow(
    rel="data/a",
    entry=b"{}",
    size_bytes=3,
    sha256="ab" * 32,
    last_modified="",
    partition="p",
    identity=FILE,
    looked_ns=LOOKED,
)
HASHLESS = replace(BASE, sha256=None)


@pytest.mark.parametrize(
    ("file", "base", "expected"),
    [
        (FILE, None, "changed"),
        (FILE, BASE, "same"),
        (replace(FILE, size_bytes=4), BASE, "changed"),
        (replace(FILE, mtime_ns=MTIME + 1), BASE, "hash"),
        (replace(FILE, ctime_ns=CTIME + 1), BASE, "hash"),
        (replace(FILE, inode=43), BASE, "hash"),
        (FILE, replace(BASE, identity=None), "hash"),
        (FILE, replace(BASE, looked_ns=0), "hash"),
        (FILE, replace(BASE, looked_ns=CTIME + RACY_NS - 1), "hash"),
        (FILE, replace(BASE, looked_ns=CTIME + RACY_NS), "same"),
        (FILE, replace(BASE, looked_ns=NOW + 1), "hash"),
    ],
)
def test_three_branches(file: FileIdentity, base: BaseRow | None, expected: Change) -> None:
    """The size decides first; the same file, not looked at too soon after a change, is the same; else its content."""
    assert change_of(file, base, now_ns=NOW, is_marked=False) == expected


@pytest.mark.parametrize(
    ("file", "base", "unmarked", "marked"),
    [
        (FILE, HASHLESS, "same", "same"),
        (replace(FILE, size_bytes=4), HASHLESS, "changed", "changed"),
        (replace(FILE, mtime_ns=MTIME + 1), HASHLESS, "changed", "changed"),
        (replace(FILE, inode=43), HASHLESS, "same", "changed"),
        (FILE, replace(HASHLESS, looked_ns=0), "same", "changed"),
        (FILE, replace(HASHLESS, identity=None), "changed", "changed"),
    ],
)
def test_an_entry_without_a_hash(file: FileIdentity, base: BaseRow, unmarked: Change, marked: Change) -> None:
    """Size and time decide; a marked file must be certainly the same one, because nothing else could tell."""
    assert change_of(file, base, now_ns=NOW, is_marked=False) == unmarked
    assert change_of(file, base, now_ns=NOW, is_marked=True) == marked


def test_a_marked_file_is_always_hashed() -> None:
    """Equal size and times prove nothing about a file that somebody says has changed (hole h)."""
    assert change_of(FILE, BASE, now_ns=NOW, is_marked=True) == "hash"
    assert change_of(replace(FILE, size_bytes=4), BASE, now_ns=NOW, is_marked=True) == "changed"


numbers = st.integers(0, 200 * SECOND)


FILES = st.builds(FileIdentity, numbers, numbers, st.integers(0, 4), st.integers(1, 3))


@given(file=FILES, looked_ns=numbers, is_marked=st.booleans())
def test_a_file_that_may_have_changed_is_never_called_the_same(
    *,
    file: FileIdentity,
    looked_ns: int,
    is_marked: bool,
) -> None:
    """Unread, a file with a hash is the same only if it is unmarked, identical, and was settled when looked at."""
    base = replace(BASE, looked_ns=looked_ns)
    if change_of(file, base, now_ns=NOW, is_marked=is_marked) == "same":
        assert file == FILE
        assert not is_marked
        assert max(MTIME, CTIME) + RACY_NS <= looked_ns <= NOW


@pytest.mark.parametrize(
    ("kind", "is_hydrated", "is_top_gone", "expected"),
    [
        (None, True, False, "missing"),
        (None, False, False, "missing"),
        ("remove", True, False, "removed"),
        ("remove", False, False, "removed"),
        ("write", True, False, "removed"),
        ("unknown", True, False, "removed"),
        ("write", False, False, "missing"),
        ("unknown", False, False, "missing"),
        ("unknown", False, True, "removed"),
    ],
)
def test_what_an_absent_file_means(
    *,
    kind: MarkKind | None,
    is_hydrated: bool,
    is_top_gone: bool,
    expected: str,
) -> None:
    """A recorded path that is gone was removed, unless it was never here; without a record nothing was removed."""
    base = BASE if is_hydrated else replace(BASE, identity=None)
    assert absent_of(base, kind, is_top_gone=is_top_gone) == expected


@given(st.sets(st.text("ab/.-é", max_size=4)), st.sets(st.text("ab/.-é", max_size=4)))
def test_pairs_are_what_a_dictionary_would_give(found: set[str], known: set[str]) -> None:
    """Merging two ordered streams finds exactly what is in both, and in either."""
    file = numbers_of(FILE)
    pairs = list(paired(((rel, file) for rel in sorted(found)), ((rel, rel) for rel in sorted(known))))
    expected = [(rel, file if rel in found else None, rel if rel in known else None) for rel in sorted(found | known)]
    assert pairs == expected
