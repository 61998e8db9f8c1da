"""Copying one file under a temporary name, with its time, to be put in place later.

Owns: noticing that the original changed while it was read.
Must not know: why a file is copied, where it will be.
Keeps: a copy has exactly the bytes of the original, on disk; no link is followed.
"""

import os
import stat
from dataclasses import dataclass

from mire.edge import files, staging
from mire.edge.walk import identity_of
from mire.errors import InputError, RemoteError, shown
from mire.model.row import FileIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A copy under its temporary name, and the original it was made of."""

    temporary: str
    sha256: str
    original: FileIdentity


def stage_copy(source: str, directory: str) -> Copied:
    """A copy of a file in a directory, under a temporary name; its time is that of the original."""
    with files.mapped(source):
        fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise InputError(f"{shown(source)} is not a regular file: it is not copied", path=source)
            temporary, written = staging.stage(directory, files.chunks_from(file))
            after = os.fstat(fd)
    if identity_of(before) != identity_of(after) or written.size_bytes != before.st_size:
        staging.discard(temporary)
        raise RemoteError(f"{shown(source)} changed while it was copied: try again", kind="changing", transient=True)
    with files.mapped(temporary):
        os.utime(temporary, ns=(before.st_atime_ns, before.st_mtime_ns))
    return Copied(temporary=temporary, sha256=written.sha256, original=identity_of(before))
