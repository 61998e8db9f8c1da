"""Caches with one bug each, and what the shipped suite must say about it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mire.errors import RemoteError
from mire.flow.mark import acknowledge, pending_marks
from mire.flow.push import push
from mire.model.artifact import ModelRef
from mire.model.names import Namespace
from mire.testing.synccache import Phase, SyncCache


class Buggy(SyncCache):
    """A cache that knows its marks, and its own files."""

    def unmark(self) -> None:
        """Forget every mark, whatever became of it."""
        seen = pending_marks(self.ds)
        acknowledge(self.ds, seen, [mark.path for mark in seen.records], is_bulk=True)

    def marked(self) -> list[str]:
        """The marked paths."""
        return [mark.path for mark in pending_marks(self.ds).records]

    def rels(self) -> list[str]:
        """Every file that is synced."""
        root = os.path.join(self.ds.tier, "data")
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
        return [os.path.relpath(path, self.ds.base) for path in paths]

    def scribble(self, rel: str, content: bytes) -> None:
        """Write a file and leave its time as it is."""
        before = os.stat(self.path(rel))
        with open(self.path(rel), "wb") as file:
            file.write(content)
        os.utime(self.path(rel), ns=(before.st_atime_ns, before.st_mtime_ns))

    @property
    def is_second(self) -> bool:
        """Whether it is the second of two."""
        return "/second/" in self.ds.base


class CountsWrongPush(Buggy):
    """A push that tells one more than it did."""

    def push(self) -> int:
        """Push."""
        return super().push() + 1


class CountsWrongPull(Buggy):
    """A pull that tells one more than it did."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        return super().pull(models) + 1


class CountsNoRemovals(Buggy):
    """A pull that removes and does not tell."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        before = len(self.rels())
        return super().pull(models) + min(0, len(self.rels()) - before)


class CountsFilesOnly(Buggy):
    """A push that tells only what it sent, not what it removed."""

    def push(self) -> int:
        """Push."""
        before = [rel for rel in self.marked() if not os.path.exists(self.path(rel))]
        return super().push() - len(before)


class CountsEverything(Buggy):
    """A pull that tells how many files there are."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        super().pull(models)
        return len(self.rels())


class IgnoresScope(Buggy):
    """A pull that brings everything when asked for a model, and tells of one file."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        super().pull()
        return len(models)


class BringsTheWrongModel(Buggy):
    """A pull of a model that brings the others."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        count = super().pull()
        for rel in self.rels() if models else ():
            if "/web-1/" in rel:
                self.remove(rel)
        return count - len(models)


class ClaimsToPush(Buggy):
    """A push that claims an upload and sends nothing."""

    def push(self) -> int:
        """Count, and do nothing else."""
        return len(self.marked())


class PullsText(Buggy):
    """A pull that takes every file for text."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        count = super().pull(models)
        for rel in self.rels():
            self.scribble(rel, (self.read(rel) or b"").replace(b"\r\n", b"\n"))
        return count


class PushesNoDeletes(Buggy):
    """A push that counts deletions and does not carry them out."""

    def push(self) -> int:
        """Push what is there."""
        gone = [rel for rel in self.marked() if not os.path.exists(self.path(rel))]
        if gone:
            self.unmark()
            return len(gone)
        return super().push()


class ResurrectsOnPull(Buggy):
    """A pull that leaves a file that was deleted, and tells nothing."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull, and put back."""
        count = super().pull(models)
        if self.is_second and not self.rels():
            self.write("data/mire/conformance/web-1/state/1/raw", b"x")
        return count


class PullsNoDeletes(Buggy):
    """A pull that counts deletions and keeps every file."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull, and put back."""
        before = {rel: self.read(rel) or b"" for rel in self.rels()}
        count = super().pull(models)
        for rel in before.keys() - set(self.rels()):
            self.write(rel, before[rel])
        return count


class IgnoresBareMarks(Buggy):
    """A mark without a path that means nothing."""

    def mark(self, rel: str | None = None) -> None:
        """Mark a path only."""
        if rel is not None:
            super().mark(rel)


class PullsTheFirstOnly(Buggy):
    """A pull that forgets the second of two files, and does not tell."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        before = set(self.rels())
        count = super().pull(models)
        for rel in sorted(set(self.rels()) - before)[1:]:
            self.remove(rel)
        return count


class SwallowsFailure(Buggy):
    """A push that cannot reach the remote and says that there was nothing to do."""

    def push(self) -> int:
        """Push, somehow."""
        try:
            return super().push()
        except RemoteError:
            return 0


class ForgetsOnFailure(Buggy):
    """A push that clears its marks when it fails."""

    def push(self) -> int:
        """Push, once."""
        try:
            return super().push()
        except RemoteError:
            self.unmark()
            raise


class ClaimsTheRetry(ForgetsOnFailure):
    """The same, and the next push claims to have sent something."""

    def push(self) -> int:
        """Push, once."""
        return super().push() or 1


class ForgetsWhenCutLate(Buggy):
    """A push that clears its marks when it fails after its first request."""

    def push(self) -> int:
        """Push, once."""
        before = self.way.asked
        try:
            return super().push()
        except RemoteError:
            if self.way.asked > before:
                self.unmark()
            raise

    @property
    def way(self) -> Any:
        """The way to the remote."""
        return self.ds.remote


class PublishesEarly(Buggy):
    """A preparation that is a push."""

    def prepare(self) -> Phase:
        """Push."""
        phase = super().prepare()
        super().commit(phase)
        return phase


class HidesEarlyPull(PublishesEarly):
    """The same, and a pull that does not tell what it brings at first."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        count = super().pull(models)
        return 0 if self.rels() == ["data/mire/conformance/web-1/state/1/raw"] else count


class PreparesForGood(Buggy):
    """A preparation that clears the marks."""

    def prepare(self) -> Phase:
        """Prepare."""
        phase = super().prepare()
        self.unmark()
        return phase


class ClaimsAfterPreparing(PreparesForGood):
    """The same, and the push after it claims an upload."""

    def push(self) -> int:
        """Push."""
        return super().push() or 1


class ClaimsBothAfterPreparing(ClaimsAfterPreparing):
    """The same, and the pull claims a file, once somebody has pushed."""

    pulls = 0

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        self.pulls += 1
        return super().pull(models) + (self.pulls == 3)


class CommitsNothing(Buggy):
    """A commit that does nothing and tells nothing."""

    def commit(self, phase: Phase) -> int:
        """Do nothing."""
        del phase
        return 0


class ClaimsToCommit(CommitsNothing):
    """A commit that does nothing and claims what was prepared."""

    def commit(self, phase: Phase) -> int:
        """Count only."""
        return 0 if phase.prepared is None else len(phase.prepared.sent)


class ClaimsToCommitAndPull(ClaimsToCommit):
    """The same, and a pull that claims to have brought it."""

    pulls = 0

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        self.pulls += 1
        return super().pull(models) + (self.pulls == 4)


class PushesStaleSecretly(Buggy):
    """A push with nothing marked that sends every file it has over whatever others did, and does not tell."""

    def push(self) -> int:
        """Push everything, and win."""
        if self.marked():
            return super().push()
        self.push_anew()
        return 0

    def push_anew(self) -> int:
        """Send every file, a little different."""
        for rel in self.rels():
            self.scribble(rel, (self.read(rel) or b"") + b"!")
        return push(self.ds, full=True, ours=True).count


class PushesStale(PushesStaleSecretly):
    """The same, and it tells."""

    def push(self) -> int:
        """Push everything, and win."""
        return Buggy.push(self) if self.marked() else self.push_anew()


class PullsNoChanges(Buggy):
    """A pull that claims to replace files and keeps those it has."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull, and put back."""
        before = {rel: self.read(rel) or b"" for rel in self.rels()}
        count = super().pull(models)
        for rel, content in before.items():
            self.scribble(rel, content)
        return count


class CommitsAnything(Buggy):
    """A commit that claims something when there was nothing."""

    def commit(self, phase: Phase) -> int:
        """Commit."""
        return super().commit(phase) or 1


class RepublishesOnCommit(PushesStale):
    """A commit of a clean cache that sends everything again, a little different, and does not tell."""

    def commit(self, phase: Phase) -> int:
        """Commit."""
        if phase.prepared is not None:
            return super().commit(phase)
        self.push_anew()
        return 0

    def push(self) -> int:
        """Push as usual."""
        return Buggy.push(self)


class PullsSpoilQuietly(Buggy):
    """A pull that spoils what it has when there is nothing new, and leaves its time as it is."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        count = super().pull(models)
        for rel in self.rels() if not count else ():
            self.scribble(rel, b"spoilt")
        return count


class PullsTouch(Buggy):
    """A pull that rewrites every file, which its time shows."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        count = super().pull(models)
        for rel in self.rels() if not count else ():
            os.utime(self.path(rel))
        return count


class PullsTouchWithNews(PullsTouch):
    """The same, but only when there is something new."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        count = Buggy.pull(self, models)
        for rel in self.rels() if count and len(self.rels()) > 1 else ():
            os.utime(self.path(rel))
        return count


class PullsSpoilWithNews(Buggy):
    """A pull of something new that spoils what is old."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        before = self.rels()
        count = super().pull(models)
        for rel in before if count else ():
            self.scribble(rel, b"spoilt")
        return count


class CountsOldWithNew(Buggy):
    """A pull that counts everything when there is something new."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull."""
        return super().pull(models) and len(self.rels())


class MarksBackslashes(Buggy):
    """Marks that have the separators of another system."""

    def mark(self, rel: str | None = None) -> None:
        """Mark something else."""
        super().mark(None if rel is None else rel.replace("/", "\\"))


class FlattensPaths(Buggy):
    """A pull that puts files elsewhere."""

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Pull, and move."""
        count = super().pull(models)
        for rel in self.rels() if count else ():
            os.rename(self.path(rel), os.path.join(self.ds.base, rel.replace("/", "\\")))
        return count


class FetchesNothing(Buggy):
    """Reading that finds nothing."""

    def fetch(self, key: str) -> bytes | None:
        """Find nothing."""
        super().fetch(key)
        return None


class FetchesEmpty(Buggy):
    """Reading that takes what is not there for empty."""

    def fetch(self, key: str) -> bytes | None:
        """Read."""
        return super().fetch(key) or b""


class FetchesAnyKey(Buggy):
    """Reading that makes something of any key."""

    def fetch(self, key: str) -> bytes | None:
        """Read whatever is meant."""
        return super().fetch(os.path.normpath(key).lstrip("./") or "x")


class FetchesIntoTheCache(Buggy):
    """Reading that leaves what it read in the cache."""

    def fetch(self, key: str) -> bytes | None:
        """Read, and write."""
        found = super().fetch(key)
        if found is not None:
            self.write(key, found)
        return found


class FetchesOverOurs(FetchesIntoTheCache):
    """The same, but only where there is a file already."""

    def fetch(self, key: str) -> bytes | None:
        """Read, and write."""
        return super().fetch(key) if os.path.exists(self.path(key)) else Buggy.fetch(self, key)


class FetchesFromTheCache(Buggy):
    """Reading that prefers what is here."""

    def fetch(self, key: str) -> bytes | None:
        """Read here, or there."""
        found = super().fetch(key)
        return self.read(key) or found if found is not None else None


class _Unmarks(Buggy):
    """Reading after which marks are gone, though no file shows it."""

    has_fetched = False

    def fetch(self, key: str) -> bytes | None:
        """Read, and remember to forget."""
        self.has_fetched = os.path.exists(self.path(key))
        return super().fetch(key)

    def push(self) -> int:
        """Push; what was marked before a read is forgotten."""
        if self.has_fetched:
            self.unmark()
        return super().push()


class FetchesAndUnmarks(_Unmarks):
    """Reading after which a pending change is not sent."""


class FetchesUnmarksAndClaims(_Unmarks):
    """The same, and the push claims that it is."""

    def push(self) -> int:
        """Push."""
        return super().push() or 1


class FetchesErrorsAsNothing(Buggy):
    """Reading that takes a failure for an answer."""

    def fetch(self, key: str) -> bytes | None:
        """Read, somehow."""
        try:
            return super().fetch(key)
        except RemoteError:
            return None


class RemembersFailure(Buggy):
    """Reading that never recovers from a failure."""

    has_failed = False

    def fetch(self, key: str) -> bytes | None:
        """Read, until it fails."""
        if self.has_failed:
            return None
        try:
            return super().fetch(key)
        except RemoteError:
            self.has_failed = True
            raise


class DoublesNamespace(Buggy):
    """Reading that puts the namespace before a key that has it."""

    def fetch(self, key: str) -> bytes | None:
        """Read another key."""
        return super().fetch(f"{self.ds.config.namespace}/{key}" if self.ds.config.namespace else key)


class FetchesTwice(Buggy):
    """Reading that asks first whether there is something."""

    def fetch(self, key: str) -> bytes | None:
        """Ask twice."""
        super().fetch(key)
        return super().fetch(key)


class FetchesOthers(Buggy):
    """Reading that takes a key outside its namespace for one inside."""

    def fetch(self, key: str) -> bytes | None:
        """Read whatever is meant."""
        namespace = self.ds.config.namespace
        return super().fetch(key if key.startswith(f"{namespace}/") else f"{namespace}/{key}")


@dataclass(frozen=True)
class Planted:
    """A bug, and what the suite says about it."""

    label: str
    """The check and the expectation that must fail."""
    first: Callable[..., SyncCache] = SyncCache
    second: Callable[..., SyncCache] = SyncCache

    def make(self, directory: str, remote: Any, *, namespace: Namespace, is_sharded: bool) -> SyncCache:
        """The cache with the bug, on its side."""
        kind = self.second if os.path.basename(directory) == "second" else self.first
        return kind(directory, remote, namespace=namespace, is_sharded=is_sharded)


def both(label: str, kind: Callable[..., SyncCache]) -> Planted:
    """A bug of both caches."""
    return Planted(label, kind, kind)


PLANTED = (
    both("21 pull", CountsWrongPull),
    both("21 push", CountsWrongPush),
    both("22 count", CountsWrongPull),
    both("22 model", BringsTheWrongModel),
    both("22 others", IgnoresScope),
    both("23 push", CountsWrongPush),
    both("23 pull", ClaimsToPush),
    both("23 bytes", PullsText),
    both("24 push", CountsFilesOnly),
    both("24 pull", PushesNoDeletes),
    both("24 gone", ResurrectsOnPull),
    both("25 push", CountsFilesOnly),
    both("25 pull", CountsNoRemovals),
    both("25 gone", PullsNoDeletes),
    both("26 push", IgnoresBareMarks),
    both("26 pull", CountsWrongPull),
    both("26 bytes", PullsTheFirstOnly),
    both("27 fails", SwallowsFailure),
    both("27 again", ForgetsOnFailure),
    both("27 bytes", ClaimsTheRetry),
    both("27 wherever it was cut", ForgetsWhenCutLate),
    both("28a pull", PublishesEarly),
    both("28a unseen", HidesEarlyPull),
    both("28b push", PreparesForGood),
    both("28b pull", ClaimsAfterPreparing),
    both("28b bytes", ClaimsBothAfterPreparing),
    both("28c commit", CommitsNothing),
    both("28c pull", ClaimsToCommit),
    both("28c bytes", ClaimsToCommitAndPull),
    Planted("28d push", first=PushesStale),
    Planted("28d pull", first=PushesStaleSecretly),
    Planted("28d bytes", first=PullsNoChanges),
    Planted("28e commit", first=CommitsAnything),
    Planted("28e pull", first=RepublishesOnCommit),
    Planted("28e bytes", second=PullsSpoilQuietly),
    both("29 pull", CountsEverything),
    both("29 bytes", PullsSpoilQuietly),
    both("29 time", PullsTouch),
    both("29 only the new", CountsOldWithNew),
    both("29 old bytes", PullsSpoilWithNews),
    both("29 old time", PullsTouchWithNews),
    both("30 push", MarksBackslashes),
    both("30 pull", CountsWrongPull),
    both("30 bytes", FlattensPaths),
    both("31 bytes", FetchesNothing),
    both("31 missing", FetchesEmpty),
    both("31 bad key", FetchesAnyKey),
    both("31 cache", FetchesIntoTheCache),
    both("31 theirs", FetchesFromTheCache),
    both("31 ours", FetchesOverOurs),
    both("31 push", FetchesAndUnmarks),
    both("31 pushed", FetchesUnmarksAndClaims),
    both("32 fails", FetchesErrorsAsNothing),
    both("32 again", RemembersFailure),
    both("33 bytes", DoublesNamespace),
    both("33 once", FetchesTwice),
    both("33 others", FetchesOthers),
    both("33 cache", FetchesIntoTheCache),
)
