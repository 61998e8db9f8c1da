"""What changed between two JSON documents, member by member.

Owns: the comparison. Must not know: where the documents come from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference; `path` is a JSON pointer."""

    kind: Literal["added", "removed", "changed"]
    path: str
    old: Any = None
    new: Any = None


def diff_json(old: Any, new: Any, path: str = "") -> Iterator[Change]:
    """The differences in document order; lists are compared place by place."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            below = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in new:
                yield Change(kind="removed", path=below, old=old[key])
            elif key not in old:
                yield Change(kind="added", path=below, new=new[key])
            else:
                yield from diff_json(old[key], new[key], below)
    elif isinstance(old, list) and isinstance(new, list):
        for place in range(max(len(old), len(new))):
            below = f"{path}/{place}"
            if place >= len(new):
                yield Change(kind="removed", path=below, old=old[place])
            elif place >= len(old):
                yield Change(kind="added", path=below, new=new[place])
            else:
                yield from diff_json(old[place], new[place], below)
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield Change(kind="changed", path=path, old=old, new=new)
