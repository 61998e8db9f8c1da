"""A remote of which only some keys can be used.

Owns: asking, before every request, whether its key may be used for that.
Must not know: whose keys are whose; a predicate says.
Keeps: what the predicate refuses is never sent; it is a bug of ours, and says so.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from mire.edge.remote import Remote, Stat
from mire.edge.wrap import Wrapper
from mire.errors import InternalError, shown

T = TypeVar("T")
Allows = Callable[[str, str], bool]
"""Whether an operation (the name of a method of `Remote`) may be asked of a key or of a listing's prefix."""

READS: Final = frozenset(("get", "get_if_changed", "get_stream", "head"))


class Fenced(Wrapper):
    """A `Remote` that refuses keys outside of a fence."""

    def __init__(self, remote: Remote, allows: Allows) -> None:
        super().__init__(remote)
        self._allows = allows

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        if operation != "server_time_ms":
            self._check(operation, key)
        return call()

    def _check(self, operation: str, key: str) -> None:
        if not self._allows(operation, key):
            raise InternalError(f"{operation} of {shown(key)} would leave our part of {self.properties.name}")

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, by ascending key."""
        self._check("list", prefix)
        return super().list(prefix, after=after)

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the store."""
        self._check("copy", target)
        super().copy(source, target)
