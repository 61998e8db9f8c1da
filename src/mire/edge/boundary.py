"""Many files below one directory: that no symbolic link leads out of it.

Owns: remembering which directories on the way were looked at.
Must not know: what the files are.
Keeps: what `files.check_inside` refuses is refused; a directory is looked at once in a run, a file always. Memory is
bounded: files come by directory, so what was forgotten is rarely asked for again.
"""

import os
from typing import Final

from mire.edge import files

_KEPT_MAX: Final = 10_000


class Boundary:
    """A directory that paths must not leave; for one run, in one thread or many."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._plain: set[str] = set()

    def check(self, path: str) -> None:
        """Refuse a path below the directory that a symbolic link leads out of it."""
        if not path.startswith(f"{self._directory}/"):
            files.check_inside(path, self._directory)
            return
        part, above = path, []
        while part != self._directory and part not in self._plain:
            if os.path.islink(part):
                files.check_inside(path, self._directory)
                return
            part = part.rpartition("/")[0]
            above.append(part)
        if len(self._plain) > _KEPT_MAX:
            self._plain.clear()
        self._plain.update(above)
