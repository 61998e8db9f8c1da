"""Checks of reading one object past the cache.

Owns: what reading may answer, and what it must not touch.
Must not know: pytest, which backend is checked.
Keeps: each function is one check, run over an empty place by `check_sync`; the numbers are those of the reference.
"""

import os
from typing import Final

from mire.errors import InputError, MireError, RemoteError
from mire.testing.conformance_lock import expect
from mire.testing.conformance_trip import BYTES, FILE, NAMESPACE, OTHER, Sides, expect_bytes, expect_count, publish
from mire.testing.synccache import SyncCache

_OURS: Final = b"changed here, and not pushed"
_BAD_KEYS: Final = ("data/../data/x", "..", f"../{FILE}", f"/{FILE}", "")


def check_fetch_content(sides: Sides) -> None:
    """The remote's bytes, or None; nothing is written, no other key is reached, and a pending change still goes."""
    publish(sides.first, FILE, BYTES)
    before = _everything(sides.second)
    _expect_fetched("31 bytes", sides.second, FILE, BYTES)
    _expect_fetched("31 missing", sides.second, OTHER, None)
    for key in _BAD_KEYS:
        expect("31 bad key", holds=_is_refused(sides.second, key), what=f"the key {key!r} was not refused")
    expect("31 cache", holds=_everything(sides.second) == before, what="reading past the cache wrote into it")
    sides.second.pull()
    sides.second.mark(FILE)
    sides.second.write(FILE, _OURS)
    before = _everything(sides.second)
    _expect_fetched("31 theirs", sides.second, FILE, BYTES)
    expect("31 ours", holds=_everything(sides.second) == before, what="reading past the cache changed a file in it")
    expect_count("31 push", sides.second.push(), 1, "a push of what was changed before reading past the cache")
    sides.first.pull()
    expect_bytes("31 pushed", sides.first, FILE, _OURS)


def check_fetch_content_error(sides: Sides) -> None:
    """A read that failed is an error and no answer, and the next one is answered."""
    publish(sides.first, FILE, BYTES)
    sides.way.after(0)
    try:
        got = sides.first.fetch(FILE)
    except RemoteError:
        pass
    else:
        expect("32 fails", holds=False, what=f"a read that could not reach the remote was answered with {got!r:.40}")
    finally:
        sides.way.mend()
    _expect_fetched("32 again", sides.first, FILE, BYTES)


def check_fetch_content_namespace(sides: Sides) -> None:
    """A key begins with the namespace, which is not put before it again; keys of others are refused."""
    key = f"{NAMESPACE}/{FILE}"
    publish(sides.first, key, BYTES)
    publish(sides.first, f"{NAMESPACE}/{key}", _OURS)
    before, asked = _everything(sides.first), sides.way.asked
    _expect_fetched("33 bytes", sides.first, key, BYTES)
    asked = sides.way.asked - asked
    expect("33 once", holds=asked == 1, what=f"reading one object took {asked} requests")
    for other in (FILE, f"{NAMESPACE}-other/{FILE}"):
        expect("33 others", holds=_is_refused(sides.first, other), what=f"the key {other!r} was not refused")
    expect("33 cache", holds=_everything(sides.first) == before, what="reading past the cache wrote into it")


def _expect_fetched(check: str, cache: SyncCache, key: str, wanted: bytes | None) -> None:
    got = cache.fetch(key)
    expect(check, holds=got == wanted, what=f"{key} was read as {got!r:.40}, not {wanted!r:.40}")


def _is_refused(cache: SyncCache, key: str) -> bool:
    try:
        cache.fetch(key)
    except InputError:
        return True
    except MireError:
        return False
    return False


def _everything(cache: SyncCache) -> dict[str, tuple[int, bytes | None]]:
    """Every file below the cache, private ones too, with its time and bytes."""
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(cache.ds.base) for name in names]
    return {path: (os.stat(path).st_mtime_ns, cache.read(os.path.relpath(path, cache.ds.base))) for path in paths}
