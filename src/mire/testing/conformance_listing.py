"""Checks of listings and of keys: order, paging, levels, boundaries, every legal character.

Owns: what a remote must do with many keys.
Must not know: pytest, which backend is checked.
Keeps: each function is one check with a name of its own, run in an empty place by `check_remote`.
"""

from collections.abc import Iterable
from typing import Final

from mire.edge import pool
from mire.edge.limits import PAGE_KEYS
from mire.edge.remote import Level, Remote, Stat
from mire.errors import InputError
from mire.testing.conformance_lock import expect

_WRITERS = 16
ODD_NAMES: Final = (
    *("a b", " a", "a ", "a  b", "a+b", "a%20b", "a%2Fb", "%", "%%", "%zz", "a#b", "a?b", "a&b=c", "a~b", "a^b", "a`b"),
    *("it's", 'say "x"', "a*b", "a|b", "a<b>c", "{a}[b]", "(a)!$", "@a", "a:b", "a;b,c", "-a", "--", "_a", ".a", "..a"),
    *(
        "a.",
        "a..",
        "...",
        "A",
        "a",
        "ü",
        "u\u0308",
        "Ü",
        "ß",
        "漢字",
        "עברית",
        "😀",
        "👩\u200d🚀",
        "\u00a0",
        "\u2028",
        "\ue000",
    ),
    *("\U0010ffff", "x" * 255, "ü" * 127),
)
"""File names that are legal in the store, each of which some server or client has been seen to change."""

# By key `a-b` comes before `a/b`; stores that list by directory have it the other way round.
_ORDERED: Final = tuple(
    sorted(
        ("a-b", "a.b", "a/b", "a/b-c", "a/c/d", "a/c.d", "a0", "a!/q", "b", "ba/x", "é/x", "z/\U00010000", "z/\uffee")
    )
)


def check_odd_names(remote: Remote, again: Remote) -> None:
    """Names of any legal character are stored, read, listed and removed as they are, and none is another's."""
    for name in ODD_NAMES:
        remote.put(f"names/{name}", name.encode())
        remote.put(f"dirs/{name}/x", name.encode())
    for name in ODD_NAMES:
        for key in (f"names/{name}", f"dirs/{name}/x"):
            body = again.get(key)
            expect("odd names", holds=body.data == name.encode(), what=f"{key!r} has the bytes of {body.data!r}")
            expect("odd names", holds=again.head(key).key == key, what=f"{key!r} is called {body.stat.key!r}")
        listed = [stat.key for stat in again.list(f"dirs/{name}/")]
        expect("odd names", holds=listed == [f"dirs/{name}/x"], what=f"below {name!r} is {listed}")
    names = [stat.key.removeprefix("names/") for stat in again.list("names/")]
    expect("odd names", holds=names == sorted(ODD_NAMES), what=f"listed were {set(names) ^ set(ODD_NAMES)} otherwise")
    level = again.list_level("dirs/")
    expect(
        "odd names",
        holds=level.prefixes == tuple(sorted(f"dirs/{name}/" for name in ODD_NAMES)),
        what=f"the level has {level.prefixes}",
    )
    for name in ODD_NAMES:
        remote.copy(f"names/{name}", "copied")
        expect("odd names", holds=again.get("copied").data == name.encode(), what=f"{name!r} is copied as another")
        remote.delete(f"names/{name}")
    left = [stat.key for stat in again.list("names/")]
    expect("odd names", holds=left == [], what=f"removing left {left}")


def check_listing_order(remote: Remote, again: Remote) -> None:
    """Keys come in their order, code point by code point, and those after any key are exactly the greater ones."""
    for key in _ORDERED:
        remote.put(key, b"x")
    listed = _keys(again.list())
    expect("listing order", holds=listed == list(_ORDERED), what=f"{list(_ORDERED)} came as {listed}")
    for after in (*_ORDERED, "a/", "a/b/", "a0a", "zz", "!"):
        rest = _keys(again.list(after=after))
        expected = [key for key in _ORDERED if key > after]
        expect("listing order", holds=rest == expected, what=f"after {after!r} come {expected}, not {rest}")
    rest = _keys(again.list("a/", after="a/b"))
    expect("listing order", holds=rest == ["a/b-c", "a/c.d", "a/c/d"], what=f"below a/ after a/b come {rest}")


def check_prefix_boundaries(remote: Remote, again: Remote) -> None:
    """A prefix is a directory: neither its name itself nor a longer name is below it."""
    for key in ("p/x", "p/y/z", "p2/x", "p-x", "q"):
        remote.put(key, b"x")
    for prefix, expected in {"p/": ["p/x", "p/y/z"], "p/y/": ["p/y/z"], "p2/": ["p2/x"], "r/": [], "q/": []}.items():
        listed = _keys(again.list(prefix))
        expect("prefix boundaries", holds=listed == expected, what=f"below {prefix!r} are {expected}, not {listed}")
    for prefix in ("p", "/", "p//", "../"):
        try:
            list(again.list(prefix))
        except InputError:
            continue
        expect("prefix boundaries", holds=False, what=f"{prefix!r} is taken for a prefix")


def check_levels(remote: Remote, again: Remote) -> None:
    """One level shows its objects and the prefixes below it, and nothing further down."""
    for key in ("a/b/c", "a/b/d/e", "a/f", "a-g", "h"):
        remote.put(key, b"x")
    for prefix, prefixes, objects in (
        ("", ("a/",), ("a-g", "h")),
        ("a/", ("a/b/",), ("a/f",)),
        ("a/b/", ("a/b/d/",), ("a/b/c",)),
        ("nothing/", (), ()),
    ):
        level: Level = again.list_level(prefix)
        found = (level.prefixes, tuple(stat.key for stat in level.objects))
        expect("levels", holds=found == (prefixes, objects), what=f"{prefix!r} shows {found}")


def check_paging(remote: Remote, again: Remote) -> None:
    """A listing longer than a page is complete, in order, and can be begun anywhere."""
    keys = [f"many/{number // 100:02}/{number:05}" for number in range(PAGE_KEYS + 50)]
    for _ in pool.run(lambda key: remote.put(key, b""), keys, at_once=_WRITERS):
        pass
    listed = _keys(again.list("many/"))
    missing = sorted(set(keys) ^ set(listed))
    expect(
        "paging", holds=listed == keys, what=f"{len(listed)} of {len(keys)} are listed; they differ in {missing[:5]}"
    )
    half = _keys(again.list(after=keys[500]))
    expect("paging", holds=half == keys[501:], what=f"after the 501st of {len(keys)} there are {len(half)}")
    prefixes = again.list_level("many/").prefixes
    expect("paging", holds=len(prefixes) == len({key[:7] for key in keys}), what=f"the level has {prefixes}")
    for _ in pool.run(remote.delete, keys, at_once=_WRITERS):
        pass


def check_handles_agree(remote: Remote, again: Remote) -> None:
    """What one handle writes or removes another lists at once."""
    for number in range(5):
        remote.put(f"n/{number}", b"x")
        listed = _keys(again.list("n/"))
        expect("handles agree", holds=f"n/{number}" in listed, what=f"n/{number} is not listed at once")
    remote.delete("n/3")
    expect("handles agree", holds="n/3" not in _keys(again.list("n/")), what="n/3 is listed after it was removed")


def _keys(stats: Iterable[Stat]) -> list[str]:
    return [stat.key for stat in stats]


CHECKS: Final = (
    check_odd_names,
    check_listing_order,
    check_prefix_boundaries,
    check_levels,
    check_paging,
    check_handles_agree,
)
