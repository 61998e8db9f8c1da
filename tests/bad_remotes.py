"""Stores with one bug each, which the shipped suites must find."""

from mire.edge.remote import Removed, Stored
from mire.edge.wrap import Wrapper


class BlindRemote(Wrapper):
    """A store that ignores every condition."""

    def put_if(self, key: str, data: bytes, *_: object, **__: object) -> Stored:
        """Write, whatever is there."""
        return self._remote.put(key, data)


class ForgetfulRemote(Wrapper):
    """A store that says it has stored data, and has not."""

    def put_if(self, key: str, data: bytes, *_: object, **__: object) -> Stored:
        """Store an index only."""
        kept = data if "_index/" in key or "index.json" in key else data[:-1]
        return self._remote.put(key, kept)


class UndyingRemote(Wrapper):
    """A store that says it has removed objects, and has not."""

    def delete_if(self, key: str, fingerprint: str) -> Removed:
        """Keep it."""
        del key, fingerprint
        return Removed()


class HastyRemote(Wrapper):
    """A store that removes objects whatever the condition says."""

    def delete_if(self, key: str, fingerprint: str) -> Removed:
        """Remove it."""
        del fingerprint
        self._remote.delete(key)
        return Removed()
