"""Moving a repository's data between the root of its store and its namespace.

Owns: the order: locks of both parts, a look, the journal, the moves, the setting.
Must not know: how files or objects are moved.
Keeps: nothing is moved before everything was looked at and nothing collides; nothing that may be another tenant's is
moved or written over; from its first step to its last a journal is in the namespace, and the same command goes on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mire.edge.remote import Stat
from mire.errors import ConflictError, InputError
from mire.flow.claim import claim_namespace, claim_of
from mire.flow.datastore import Datastore, check_claim, check_marker, locate
from mire.flow.exchange import check_gate
from mire.flow.lock import hold_global
from mire.flow.namespace import (
    bound_to,
    check_published,
    check_settings,
    is_root_ours,
    leave,
    open_for,
    solo_of,
    store_name,
)
from mire.flow.relocate import Trees
from mire.flow.relocate_remote import (
    Looked,
    Sides,
    copy_over,
    delete_there,
    drop_export,
    list_here,
    look,
    open_sides,
    unlist_there,
)
from mire.flow.relocation_journal import forget_journal, load_journal, save_journal, stats_in
from mire.flow.within import Watch, within_timeout
from mire.model.names import SOLO, Namespace
from mire.plan.config import Flags
from mire.plan.relocation import Relocation, Share, collision_error
from mire.wire.relocated import Direction, Relocated


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What a migration moved, or would move."""

    namespace: Namespace
    is_reverse: bool
    is_dry_run: bool
    is_resumed: bool
    shares: Mapping[str, Share] = field(default_factory=dict)
    duplicates: int = 0
    """How many of them were at their target already."""
    findings: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """How many files or objects."""
        return sum(share.files for share in self.shares.values())

    @property
    def size_bytes(self) -> int:
        """How much."""
        return sum(share.size_bytes for share in self.shares.values())


def migrate_namespace(
    repo_dir: str,
    *,
    reverse: bool = False,
    dry_run: bool = False,
    adopt: bool = False,
    flags: Flags | None = None,
    watch: Watch | None = None,
) -> Migration:
    """Move the data of a repository into its namespace, or back to the root, which also leaves the namespace.

    `adopt` says that what is at the root is this repository's, where that is not known.
    """
    found = locate(repo_dir, flags=flags)
    repo_id = check_settings(found)
    ds = open_for(found)
    if not ds.config.namespace:
        raise InputError("the repository has no namespace: 'mire namespace set NAME' takes one", kind="no_namespace")
    check_claim(claim_of(ds, ds.config.namespace), repo_id)
    work = _Work(ds, "reverse" if reverse else "forward", adopt=adopt, watch=watch)
    if dry_run:
        return work.preview()
    if ds.remote is None:
        ds = replace(ds, read_only_reason=check_marker(ds.base))
    else:
        check_gate(ds, is_settling=True)
    claim_namespace(ds, repo_id)
    with _both_held(ds) as check:
        done = work.moved(check)
    if reverse:
        leave(ds, found.repo_dir, repo_id)
    return done


@contextmanager
def _both_held(ds: Datastore) -> Iterator[Callable[[], None]]:
    """The global locks of the root and of the namespace, in this order: nobody writes in either.

    What it yields proves that both are still ours.
    """
    bare = replace(ds, lifecycle=None)
    with hold_global(solo_of(bare)) as one, hold_global(bare) as other:

        def check() -> None:
            one.check(is_strict=True)
            other.check(is_strict=True)

        yield check


class _Work:
    """One migration of one repository."""

    def __init__(self, ds: Datastore, direction: Direction, *, adopt: bool, watch: Watch | None) -> None:
        self._ds = ds
        self._bound = within_timeout(ds, watch)
        self._direction: Direction = direction
        self._source, self._target = (
            (SOLO, ds.config.namespace) if direction == "forward" else (ds.config.namespace, SOLO)
        )
        self._adopt = adopt
        self._journal: Relocated | None = None

    def _seen(self) -> tuple[Relocation, tuple[str, ...], str | None]:
        """What is to be moved, what was noticed, and why it may not be ours; refused where it collides."""
        self._load()
        if self._ds.remote is None:
            relocation = self._trees.looked(self._ds.config.directories)
            at_root = self._trees.at_target(self._ds.config.directories) if self._direction == "reverse" else 0
            return relocation, (), self._doubt(relocation, at_root)
        with open_sides(self._bound, self._source, self._target) as sides:
            seen = look(sides)
        return seen.relocation, tuple(seen.findings), self._doubt(seen.relocation, seen.are_foreign)

    def preview(self) -> Migration:
        """What would be moved; whose that is need not be known for a look, but is told."""
        relocation, findings, doubt = self._seen()
        return self.done((relocation, (*findings, *([] if doubt is None else [doubt]))), is_dry_run=True)

    def moved(self, check: Callable[[], None]) -> Migration:
        """Move it; `check` proves that the locks are ours."""
        return self._move_files(check) if self._ds.remote is None else self._move_objects(check)

    def done(self, looked: tuple[Relocation, tuple[str, ...]], *, is_dry_run: bool = False) -> Migration:
        """The numbers."""
        relocation, findings = looked
        return Migration(
            namespace=self._ds.config.namespace,
            is_reverse=self._direction == "reverse",
            is_dry_run=is_dry_run,
            is_resumed=self._journal is not None,
            shares=relocation.shares,
            duplicates=len(relocation.duplicates),
            findings=findings,
        )

    @property
    def _trees(self) -> Trees:
        ds = self._ds
        return Trees(source=bound_to(ds, self._source).tier, target=bound_to(ds, self._target).tier, config=ds.config)

    def _load(self) -> None:
        self._journal = load_journal(self._ds)
        if self._journal is None:
            check_published(self._ds)
        if self._journal is not None and self._journal.direction != self._direction:
            other = "mire namespace migrate" + (" --reverse" if self._journal.direction == "reverse" else "")
            raise ConflictError(
                f"a migration the other way did not come to its end: finish it first with '{other}'",
                kind="migration_interrupted",
            )

    def _check(self, doubt: str | None) -> None:
        if doubt is not None:
            raise ConflictError(doubt, kind="not_ours")

    def _doubt(self, relocation: Relocation, at_target: int) -> str | None:
        """Why it may be another tenant's: nobody knows whose a shared root is. What collides is refused."""
        if relocation.collisions:
            raise collision_error(relocation.collisions, self._prefix(self._source), self._prefix(self._target))
        if self._adopt or self._journal is not None or is_root_ours(self._ds):
            return None
        name = store_name(self._ds)
        if self._direction == "forward" and (relocation.moves or relocation.duplicates):
            return (
                f"nobody can tell whose the data at the root of {name} is, since others may use it without a namespace:"
                " if it is this repository's, add --adopt"
            )
        if self._direction == "reverse" and at_target and (relocation.moves or relocation.duplicates):
            return (
                f"the root of {name} has data already ({at_target} files), perhaps another repository's: to mix"
                " both, add --adopt"
            )
        return None

    def _prefix(self, namespace: Namespace) -> str:
        if self._ds.remote is None:
            return f"{bound_to(self._ds, namespace).tier}/"
        return f"{namespace}/" if namespace else ""

    def _move_files(self, check: Callable[[], None]) -> Migration:
        relocation, findings, doubt = self._seen()
        self._check(doubt)
        check()
        save_journal(self._ds, self._direction, {})
        self._trees.move(self._ds.config.directories)
        forget_journal(self._ds)
        return self.done((relocation, findings))

    def _move_objects(self, check: Callable[[], None]) -> Migration:
        self._load()
        with open_sides(self._bound, self._source, self._target) as sides:
            seen = look(sides)
            self._check(self._doubt(seen.relocation, seen.are_foreign))
            leaving = {**stats_in(self._journal), **seen.stats}
            self._exchange(sides, seen, leaving, check)
        findings = [*seen.findings, *self._move_cache(leaving)]
        forget_journal(self._ds)
        return self.done((seen.relocation, tuple(findings)))

    def _exchange(self, sides: Sides, seen: Looked, leaving: dict[str, Stat], check: Callable[[], None]) -> None:
        save_journal(self._ds, self._direction, leaving)
        copy_over(sides, seen)
        gone: frozenset[str] = frozenset()
        if seen.entries:
            check()
            list_here(sides, seen)
            check()
            gone = unlist_there(sides, seen)
        if self._direction == "reverse":
            drop_export(sides.source)
        check()
        # What an earlier run took out of the index and did not get to delete; what is listed again is not ours to.
        listed = seen.entries.keys() - gone
        kept = delete_there(sides, {rel: stat for rel, stat in leaving.items() if rel not in listed})
        seen.findings += [f"{rel} was stored again meanwhile: it stays where it was" for rel in sorted(kept)]

    def _move_cache(self, rels: Iterable[str]) -> list[str]:
        """Let the cache follow: what it has of the moved objects need not come again."""
        tops = tuple(sorted({rel.partition("/")[0] for rel in rels if "/" in rel}))
        relocation = self._trees.looked(tops)
        self._trees.move(tops, leave=frozenset(relocation.collisions))
        source = self._prefix_in_cache(self._source)
        return [f"{source}{rel} in the cache is another file than {rel}: it stays" for rel in relocation.collisions]

    def _prefix_in_cache(self, namespace: Namespace) -> str:
        return f"{bound_to(self._ds, namespace).tier}/"
