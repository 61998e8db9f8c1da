"""Moving the files of a tenant from one tier of a directory to another.

Owns: which files move with a tenant, and the order of the steps.
Must not know: locks, settings, who asked.
Keeps: every step is one rename or one removal of a duplicate, so that after a crash each file is whole in one place or
the other, and the next run goes on; what belongs to a repository or to a lock stays where it is.
"""

import os
from dataclasses import dataclass

from mire.edge import files, moving
from mire.model.config import Config
from mire.model.names import PRIVATE_PREFIX, RelPath
from mire.plan.relocation import Relocation, plan_relocation
from mire.plan.route import tier_of
from mire.wire.layout import LOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """Two tiers of one directory: where files are, and where they go."""

    source: str
    target: str
    config: Config

    def looked(self, tops: tuple[str, ...]) -> Relocation:
        """What is to be done with everything below some directories of the source; nothing is changed."""
        found: dict[str, int] = {}
        for top in tops:
            below = moving.list_below(os.path.join(self.source, top))
            found |= {rel: size for name, size in below.items() if not self.stays(rel := f"{top}/{name}")}
        at_target = {rel: self._is_same(rel) for rel in found if self._is_taken(rel)}
        return plan_relocation(found, at_target)

    def at_target(self, tops: tuple[str, ...]) -> int:
        """How many files are at the target that are not at the source: somebody else's, perhaps."""
        found = 0
        for top in tops:
            below = moving.list_below(os.path.join(self.target, top))
            rels = (f"{top}/{name}" for name in below)
            found += sum(not self.stays(rel) and not os.path.lexists(os.path.join(self.source, rel)) for rel in rels)
        return found

    def stays(self, rel: str) -> bool:
        """Whether a file does not move: a lock, the repository's catalog, what the settings keep local."""
        name = rel.rpartition("/")[2]
        is_catalog = rel.count("/") == 1 and name.startswith(PRIVATE_PREFIX)
        is_local = bool(self.config.exclude) and tier_of(RelPath(rel), self.config) == "local"
        return name == LOCK or is_catalog or is_local

    def _is_taken(self, rel: str) -> bool:
        """Whether something is in the way at the target: a file of that name, or one where a directory must be."""
        path = os.path.join(self.target, rel)
        if os.path.lexists(path):
            return True
        parent = os.path.dirname(path)
        while not os.path.lexists(parent):
            parent = os.path.dirname(parent)
        return not os.path.isdir(parent)

    def _is_same(self, rel: str) -> bool:
        path = os.path.join(self.target, rel)
        return os.path.lexists(path) and moving.is_same(os.path.join(self.source, rel), path)

    def move(self, tops: tuple[str, ...], *, leave: frozenset[str] = frozenset()) -> None:
        """Move it all but some paths; a directory goes as a whole where nothing is in its place and nothing stays."""
        mixed: set[str] = set()
        for top in tops:
            for name in moving.list_below(os.path.join(self.source, top)):
                rel = f"{top}/{name}"
                if rel in leave or self.stays(rel):
                    mixed |= {rel[:end] for end, char in enumerate(rel) if char == "/"}
        for top in tops:
            if os.path.lexists(os.path.join(self.source, top)):
                self._move(top, mixed, leave)

    def _move(self, rel: str, mixed: set[str], leave: frozenset[str]) -> None:
        source, target = os.path.join(self.source, rel), os.path.join(self.target, rel)
        if files.is_dir(source) and not files.is_link(source):
            if rel not in mixed and not os.path.lexists(target):
                moving.move(source, target)
                return
            for entry in files.list_dir(source):
                self._move(f"{rel}/{entry.name}", mixed, leave)
            moving.remove_if_empty(source)
        elif rel not in leave and not self.stays(rel):
            if not os.path.lexists(target):
                moving.move(source, target)
            elif moving.is_same(source, target):
                files.remove_file(source)
