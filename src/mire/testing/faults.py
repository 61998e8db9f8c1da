"""Faults of a test server: which requests misbehave, and how.

Owns: the actions, the rules that match requests, and the handle of a request that is held.
Must not know: HTTP, the dialect of the server, how an action is carried out.
Keeps: the same requests in the same order meet the same faults; chance enters only through a seeded rule.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait this long before the request is applied."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an error; the request is not applied. The code is the usual one of the status if not given."""

    status: int
    code: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection; the request is not applied."""


@dataclass(frozen=True, slots=True)
class ApplyThenDrop:
    """Apply the request, then close the connection without an answer."""


@dataclass(frozen=True, slots=True)
class ApplyThenFail:
    """Apply the request, then answer with an error."""

    status: int
    code: str = ""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Announce the whole body, send this many bytes of it, and close the connection."""

    at_bytes: int


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Flip every bit of one byte of the answer's body; the length stays."""

    at_byte: int = 0


@dataclass(frozen=True, slots=True)
class ShortListing:
    """List without the keys that match, or end after `keep` entries and call the listing complete."""

    omit: str | None = None
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Call something between receiving and applying, in a thread of its own: it may use the server."""

    callback: Callable[[], object]


@dataclass(frozen=True, slots=True)
class RunAfter:
    """Call something between applying and answering, in a thread of its own."""

    callback: Callable[[], object]


Action = Delay | Fail | Drop | ApplyThenDrop | ApplyThenFail | Truncate | Corrupt | ShortListing | Run | RunAfter
KeyMatch = str | Callable[[str], bool] | None


@dataclass(slots=True, kw_only=True, eq=False)
class Rule:
    """An action and the requests it is for: of those that match, `skip` pass first and `times` are hit."""

    action: Action
    operation: str = "*"
    key: KeyMatch = None
    skip: int = 0
    times: int | None = 1
    chance: float = 1.0
    hits: int = 0
    seen: int = 0

    def matches(self, operation: str, key: str) -> bool:
        """Whether the rule is about such a request at all."""
        if not fnmatchcase(operation, self.operation):
            return False
        if self.key is None:
            return True
        return fnmatchcase(key, self.key) if isinstance(self.key, str) else self.key(key)


@dataclass(slots=True, eq=False)
class Hold:
    """A request that waits: `arrived` is set when it is there, `release()` lets it (and later ones) go on."""

    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let the request go on."""
        self.released.set()

    def wait(self) -> None:
        """Called for the request: say that it is there, then wait."""
        self.arrived.set()
        self.released.wait()


class Faults:
    """The rules of a server; every method may be called from any thread."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._holds: list[Hold] = []
        self._random = random.Random(seed)  # noqa: S311 - the same faults again is the point

    def add(self, rule: Rule) -> Rule:
        """Add a rule; rules are asked in the order in which they came."""
        with self._lock:
            self._rules.append(rule)
        return rule

    def add_hold(self, hold: Hold) -> Hold:
        """Remember a hold, so that stopping the server lets its requests go."""
        with self._lock:
            self._holds.append(hold)
        return hold

    def remove(self, rule: Rule) -> None:
        """Take a rule away; one that is gone already is fine."""
        with self._lock:
            self._rules = [other for other in self._rules if other is not rule]

    def clear(self) -> None:
        """Take all rules away and let all held requests go."""
        with self._lock:
            self._rules = []
            holds, self._holds = self._holds, []
        for hold in holds:
            hold.release()

    def actions_for(self, operation: str, key: str) -> list[Action]:
        """The actions that hit this request; asking counts."""
        if not self._rules:
            return []
        with self._lock:
            return [rule.action for rule in self._rules if rule.matches(operation, key) and self._takes(rule)]

    def _takes(self, rule: Rule) -> bool:
        rule.seen += 1
        if rule.seen <= rule.skip or (rule.times is not None and rule.hits >= rule.times):
            return False
        if rule.chance < 1.0 and self._random.random() >= rule.chance:
            return False
        rule.hits += 1
        return True
