"""What tests do to a server behind its clients' backs: look, store, remove, age.

Owns: the state of a server of objects as tests see it.
Must not know: the dialect in which clients are answered.
Keeps: nothing done here is counted or meets a fault; each call sees a state between two requests.
"""

import ssl
from dataclasses import replace

from mire.testing.bucket import Blob
from mire.testing.objectserver import ObjectServer
from mire.testing.s3body import md5_hex
from mire.testing.s3world import Dialect, World


class StoreServer(ObjectServer):
    """A server with buckets; every method may be called from any thread, also while the server is stopped."""

    def __init__(self, world: World, *, port: int = 0, seed: int = 0, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(port=port, seed=seed, tls=tls)
        self._world = world

    @property
    def dialect(self) -> Dialect:
        """In what the server differs from AWS; may be set at any time."""
        return self._world.dialect

    @dialect.setter
    def dialect(self, dialect: Dialect) -> None:
        self._world.dialect = dialect

    def put(self, bucket: str, key: str, data: bytes) -> str:
        """Store an object; its ETag, unquoted."""
        with self._state:
            target = self._world.buckets[bucket]
            blob = Blob(
                data=data,
                etag=md5_hex(data),
                modified_s=self.now_s(),
                generation=target.number(),
                content_type="application/octet-stream",
                metadata={},
            )
            target.put(key, blob)
            return blob.etag

    def get(self, bucket: str, key: str) -> bytes | None:
        """What is stored under a key, or None."""
        with self._state:
            blob = self._world.buckets[bucket].objects.get(key)
            return None if blob is None else blob.data

    def generation(self, bucket: str, key: str) -> int:
        """The number of the write that made an object; 0 when there is none."""
        with self._state:
            blob = self._world.buckets[bucket].objects.get(key)
            return 0 if blob is None else blob.generation

    def delete(self, bucket: str, key: str) -> bool:
        """Remove an object; whether there was one."""
        with self._state:
            return self._world.buckets[bucket].remove(key)

    def keys(self, bucket: str) -> list[str]:
        """The keys of a bucket, sorted."""
        with self._state:
            return list(self._world.buckets[bucket].keys)

    def age(self, bucket: str, key: str, seconds: float) -> None:
        """Make an object older than it is."""
        with self._state:
            objects = self._world.buckets[bucket].objects
            objects[key] = replace(objects[key], modified_s=objects[key].modified_s - seconds)

    def uploads(self, bucket: str) -> list[str]:
        """The keys of uploads in parts that were begun and neither completed nor aborted."""
        with self._state:
            return sorted(upload.key for upload in self._world.buckets[bucket].uploads.values())
