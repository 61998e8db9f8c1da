"""Checks of a push that does not go through at once: it fails, or is made in two halves.

Owns: failed pushes and their repetition, prepare and commit.
Must not know: pytest, which backend is checked.
Keeps: each function is one check, run over an empty place by `check_sync`; the numbers are those of the reference.
"""

from typing import Final

from mire.errors import RemoteError
from mire.testing.conformance_lock import ConformanceError, expect
from mire.testing.conformance_trip import BYTES, FILE, OTHER, Sides, expect_bytes, expect_count

_REQUESTS_MAX: Final = 40
"""More than a push of one file makes."""


def check_failed_push_retry(sides: Sides) -> None:
    """A push that cannot reach the remote fails and loses no mark; wherever it was cut, the next one completes it."""
    sides.first.mark(FILE)
    sides.first.write(FILE, BYTES)
    expect("27 fails", holds=not _is_pushed(sides, 0), what="a push that could not reach the remote did not fail")
    expect_count("27 again", sides.first.push(), 1, "a push after one that failed")
    sides.second.pull()
    expect_bytes("27 bytes", sides.second, FILE, BYTES)
    for requests in range(1, _REQUESTS_MAX):
        content = BYTES + b"%d" % requests
        sides.first.mark(FILE)
        sides.first.write(FILE, content)
        is_pushed, was_cut = _is_pushed(sides, requests), sides.way.is_cut
        sides.way.mend()
        if not is_pushed:
            sides.first.push()
        sides.second.pull()
        expect_bytes("27 wherever it was cut", sides.second, FILE, content)
        if is_pushed and not was_cut:
            return
    raise ConformanceError(f"check 27: a push of one file makes more than {_REQUESTS_MAX} requests")


def _is_pushed(sides: Sides, requests: int) -> bool:
    """Whether a push says that it is done, though it is let through for some requests only."""
    sides.way.after(requests)
    try:
        sides.first.push()
    except RemoteError:
        return False
    finally:
        if not requests:
            sides.way.mend()
    return True


def check_two_phases(sides: Sides) -> None:
    """Nothing is seen before the commit, a push after a mere preparation sends everything, and no stale copy goes."""
    first, second = sides.first, sides.second
    first.mark(FILE)
    first.write(FILE, BYTES)
    first.prepare()
    expect_count("28a pull", second.pull(), 0, "a pull of what is only prepared")
    expect_bytes("28a unseen", second, FILE, None)
    expect_count("28b push", first.push(), 1, "a push after a preparation that was not committed")
    expect_count("28b pull", second.pull(), 1, "a pull of what was pushed after a preparation")
    expect_bytes("28b bytes", second, FILE, BYTES)
    first.mark(OTHER)
    first.write(OTHER, BYTES)
    expect_count("28c commit", first.commit(first.prepare()), 1, "a commit of one file")
    expect_count("28c pull", second.pull(), 1, "a pull of one committed file")
    expect_bytes("28c bytes", second, OTHER, BYTES)
    _check_stale(sides)
    _check_clean(sides)


def _check_stale(sides: Sides) -> None:
    """A copy that somebody else has replaced since is not sent again."""
    sides.second.mark(OTHER)
    sides.second.write(OTHER, BYTES[::-1])
    sides.second.push()
    expect_count("28d push", sides.first.push(), 0, "a push of a cache in which nothing was changed")
    expect_count("28d pull", sides.first.pull(), 1, "a pull of what was changed elsewhere")
    expect_bytes("28d bytes", sides.first, OTHER, BYTES[::-1])


def _check_clean(sides: Sides) -> None:
    expect_count("28e commit", sides.first.commit(sides.first.prepare()), 0, "a commit of a clean cache")
    expect_count("28e pull", sides.second.pull(), 0, "a pull after a commit of a clean cache")
    expect_bytes("28e bytes", sides.second, OTHER, BYTES[::-1])
