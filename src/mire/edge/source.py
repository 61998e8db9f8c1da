"""The pieces of an upload.

Owns: taking them one by one, and joining them to parts.
Must not know: where they come from, where they go.
Keeps: what goes wrong in them is told from what goes wrong in the store.
"""

from collections.abc import Iterable, Iterator


class Source:
    """The pieces of an upload; what goes wrong in them is told from what goes wrong in the store."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.is_exhausted = False
        self.error: BaseException | None = None

    def up_to(self, size_bytes: int) -> list[bytes]:
        """The first pieces, until there are more bytes than this or no more pieces."""
        taken: list[bytes] = []
        size = 0
        for chunk in self:
            taken.append(chunk)
            size += len(chunk)
            if size > size_bytes:
                break
        return taken

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except StopIteration:
            self.is_exhausted = True
            raise
        except BaseException as error:
            self.error = error
            raise


def parts_of(chunks: Iterable[bytes], size_bytes: int) -> Iterator[bytes]:
    """The bytes of some pieces, anew in parts of one size; only the last one is smaller."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= size_bytes:
            yield bytes(held[:size_bytes])
            del held[:size_bytes]
    if held:
        yield bytes(held)
