"""Listings of S3: what to ask, and what the answers say.

Owns: the query of a listing, reading the XML of a page, and going from page to page.
Must not know: credentials, endpoints, connections.
Keeps: every key is given as the store has it: obstore's listings drop final slashes and fail as a whole at a key with
an empty segment. A page that says it is not the last one and does not say how to go on is an error, never an end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote_plus
from xml.etree import ElementTree as ET

from mire.edge.bucket import BrokenListingError
from mire.edge.limits import PAGE_KEYS
from mire.edge.remote import Level, Stat


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing; `following` is the token of the next one."""

    level: Level
    following: str | None


def pages(
    ask: Callable[[dict[str, str]], bytes], prefix: str, *, after: str = "", delimiter: str = ""
) -> Iterator[Level]:
    """The pages of a listing, each asked for when it is wanted; `ask` sends a query and gives the XML."""
    query = {"list-type": "2", "prefix": prefix, "max-keys": str(PAGE_KEYS), "encoding-type": "url"}
    if after:
        query["start-after"] = after
    if delimiter:
        query["delimiter"] = delimiter
    following: str | None = None
    while True:
        page = read_page(ask(query))
        yield page.level
        if page.following is None:
            return
        if page.following == following:
            raise BrokenListingError("the listing goes in circles")
        following = query["continuation-token"] = page.following


def read_page(body: bytes) -> Page:
    """One page from its XML."""
    try:
        root = ET.fromstring(body)  # noqa: S314 - expat limits what entities may grow to
    except ET.ParseError:
        raise BrokenListingError("the listing is not XML") from None
    rows: list[dict[str, str]] = []
    prefixes: list[str] = []
    facts: dict[str, str] = {}
    for element in root:
        name = element.tag.rpartition("}")[2]
        if name == "Contents":
            rows.append({child.tag.rpartition("}")[2]: child.text or "" for child in element})
        elif name == "CommonPrefixes":
            prefixes += [child.text or "" for child in element]
        else:
            facts[name] = element.text or ""
    read = unquote_plus if facts.get("EncodingType") == "url" else str
    following = facts.get("NextContinuationToken") or None
    if facts.get("IsTruncated", "").lower() != "true":
        following = None
    elif following is None:
        raise BrokenListingError("the listing is cut off")
    try:
        stats = tuple(_stat_of(row, read) for row in rows)
    except (KeyError, ValueError):
        raise BrokenListingError("the listing has an entry without key, size, time or ETag") from None
    return Page(Level(prefixes=tuple(map(read, prefixes)), objects=stats), following)


def _stat_of(row: dict[str, str], read: Callable[[str], str]) -> Stat:
    return Stat(
        key=read(row["Key"]),
        size_bytes=int(row["Size"]),
        fingerprint=row["ETag"].strip('"'),
        modified_ms=int(datetime.fromisoformat(row["LastModified"]).timestamp() * 1000),
    )
