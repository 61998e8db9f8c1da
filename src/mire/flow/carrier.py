"""Who moves the files of a push or a pull: this process, or something larger that was asked to help.

Owns: the `Carrier` protocol.
Must not know: how a carrier works, what is moved and why.
Keeps: a carrier moves bytes and tells what came of it; it decides nothing and commits nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from mire.edge.files import Written
from mire.errors import MireError
from mire.flow.transfer import Sent, Unpublished
from mire.model.index import Entry
from mire.model.names import RelPath

if TYPE_CHECKING:
    from mire.flow.place import Place

Arrived = tuple[str, Written]
"""A file under a temporary name, whole and verified."""


class Carrier(Protocol):
    """Moves many files at once, wherever it does that."""

    at_a_time: int
    """How many files a pull hands over at a time."""

    def limit(self, budget_ms: float, late: Callable[[], MireError]) -> None:
        """Move nothing any more when so much time has passed from now on; `late` makes the error."""

    def send(
        self,
        place: "Place",
        replaced: Mapping[RelPath, Entry | None],
        known: Mapping[RelPath, Unpublished],
        *,
        gathered: bool,
    ) -> Iterator[tuple[RelPath, Sent | MireError]] | None:
        """Store files of the cache, as `flow/send` does; None when that may as well be done here.

        `known` is what we stored and did not publish; `gathered` as in `pool.run`.
        """

    def fetch(
        self, place: "Place", wanted: Mapping[RelPath, Entry], directory: str
    ) -> Iterator[tuple[RelPath, Arrived | MireError]] | None:
        """Bring objects into a directory, as `flow/apply` does; None when that may as well be done here."""
