"""Versions as the index tells them: which names there are, which numbers they have, and which one is published.

Owns: finding names among the entries of a share, and telling the latest version without asking for the marker.
Must not know: metadata, tables.
Keeps: the versions of a name are those that a reader of the store sees, and no others.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from mire.edge.remote import Remote
from mire.errors import FormatError, NotFoundError
from mire.flow.scan import key_of
from mire.model.artifact import ModelRef, NameState
from mire.model.index import Damaged, Entry
from mire.model.names import Namespace
from mire.model.row import NameKey
from mire.plan.write import published_number, visible_numbers
from mire.wire.latest import decode_highest, decode_latest, encode_latest
from mire.wire.layout import DATA, HIGHEST, LATEST, METADATA
from mire.wire.partition import partition_of

VERSION: Final = re.compile(rf"({DATA}/.+)/([1-9]\d{{0,15}})/{re.escape(METADATA)}", re.ASCII)
VERSION_END: Final = f"/{METADATA}"
"""How the paths end that make versions."""

Said = Entry | Damaged | None


def home_of(directory: str) -> str:
    """The partition that lists the versions of a name."""
    return partition_of(f"{directory}/1{VERSION_END}") or ""


def marker_home_of(directory: str) -> str:
    """The partition that lists its marker, and its floor: mostly another one."""
    return partition_of(f"{directory}/{LATEST}") or ""


@dataclass(slots=True)
class NameSeen:
    """One name, and its versions that have metadata."""

    key: NameKey
    directory: str
    numbers: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The versions of a name that are to be read, and which of its versions is the latest."""

    numbers: tuple[int, ...]
    latest: int | None


def names_of(paths: Iterable[str], namespace: Namespace, is_wanted: Callable[[NameKey], bool]) -> list[NameSeen]:
    """The names that paths of metadata come to; those of a piece fit into memory."""
    names: dict[str, NameSeen | None] = {}
    models: dict[str, ModelRef] = {}
    for rel in paths:
        match = VERSION.fullmatch(rel)
        if match is None:
            continue
        directory = match[1]
        if directory not in names:
            above, _, name = directory.rpartition("/")
            if above in models:
                key: NameKey | None = NameKey(namespace=namespace, model=models[above], name=name)
            elif (key := key_of(directory, namespace)) is not None:
                models[above] = key.model
            names[directory] = NameSeen(key, directory) if key is not None and is_wanted(key) else None
        seen = names[directory]
        if seen is not None:
            seen.numbers.append(int(match[2]))
    return [seen for seen in names.values() if seen is not None]


def published(
    remote: Remote, find: Callable[[str], Said], name: NameSeen, *, is_latest_only: bool, is_listed: bool
) -> Published:
    """What a reader sees of a name; `is_listed` says that `find` knows what is stored, so that it need not be asked."""
    numbers = tuple(sorted(set(name.numbers)))
    state = state_of(remote, find, name.directory, numbers, is_listed=is_listed)
    return _published(state, is_latest_only=is_latest_only)


@lru_cache(maxsize=4096)
def _published(state: NameState, *, is_latest_only: bool) -> Published:
    """Worked out once for all names that are in the same state: most have one version, which is published."""
    visible = visible_numbers(state)
    latest = published_number(state) or (visible[-1] if visible else None)
    return Published(numbers=tuple(n for n in visible if not is_latest_only or n == latest), latest=latest)


def state_of(
    remote: Remote, find: Callable[[str], Said], directory: str, numbers: tuple[int, ...], *, is_listed: bool
) -> NameState:
    """Marker and floor of a name. The hash of a marker tells its number, mostly: there are few numbers it can be."""
    marker_at, highest_at = f"{directory}/{LATEST}", f"{directory}/{HIGHEST}"
    said = find(marker_at) if is_listed else None
    if isinstance(said, Entry) and said.sha256 is not None:
        for number in reversed(numbers):
            if _digest(number) == said.sha256:
                return NameState(numbers=numbers, marker=number)
    if isinstance(said, Damaged):
        raise FormatError(f"{marker_at} in the index {said.reason}", kind="damaged")
    data = _stored(remote, marker_at) if said is not None or not is_listed else None
    if data is not None:
        return NameState(numbers=numbers, marker=decode_latest(data))
    # The floor of deleted versions counts only where there is no marker.
    is_floored = not is_listed or find(highest_at) is not None
    highest = (_stored(remote, highest_at) if is_floored else None) or b""
    return NameState(numbers=numbers, highest=decode_highest(highest))


@lru_cache(maxsize=4096)
def _digest(number: int) -> str:
    return hashlib.sha256(encode_latest(number)).hexdigest()


def _stored(remote: Remote, key: str) -> bytes | None:
    try:
        return remote.get(key).data
    except NotFoundError:
        return None
