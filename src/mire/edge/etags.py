"""One store in two spellings of its ETags: with quotes, as HTTP wants them, or without, as some stores do.

Owns: finding out which of two remotes for one store is understood, and going on with that one.
Must not know: which key is free for a probe; it is told one for each key that raises the question.
Keeps: a refusal is taken for a misunderstanding only after a probe has shown that the other spelling is both
understood and enforced: a store that ignores what it does not understand would overwrite everything.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from mire.edge import clock
from mire.edge.remote import Absent, Body, Condition, Matches, Properties, Refused, Remote, Removed, Stored, Unknown
from mire.edge.wrap import Wrapper
from mire.errors import NotFoundError, RemoteError, shown

T = TypeVar("T", bound=Stored | Removed | Refused | Unknown)


class EitherEtags(Wrapper):
    """A `Remote` that begins with quotes, and leaves them away where the store turns out to want that.

    It costs one HEAD for each refusal until the first conditional write that succeeds, and the probe once.
    """

    def __init__(
        self, quoted: Remote, unquoted: Remote, probe_key: Callable[[str], str], *, conditional_delete: bool = True
    ) -> None:
        super().__init__(quoted)
        self.quoted = quoted
        self.unquoted = unquoted
        self._probe_key = probe_key
        self._conditional_delete = conditional_delete
        self._is_proved = False

    @property
    def properties(self) -> Properties:
        """What the remote can do."""
        return replace(self._remote.properties, conditional_delete=self._conditional_delete)

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint, however that is spelt."""
        body = self._remote.get_if_changed(key, fingerprint)
        return None if body is not None and body.stat.fingerprint == fingerprint else body

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        if isinstance(condition, Absent):
            return self._remote.put_if(key, data, condition, token=token)
        return self._understood(
            key, condition.fingerprint, lambda remote: remote.put_if(key, data, condition, token=token)
        )

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds."""
        if isinstance(condition, Absent):
            return self._remote.put_stream_if(key, open_chunks, condition)
        return self._understood(
            key, condition.fingerprint, lambda remote: remote.put_stream_if(key, open_chunks, condition)
        )

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint."""
        return self._understood(key, fingerprint, lambda remote: remote.delete_if(key, fingerprint))

    def _understood(self, key: str, fingerprint: str, attempt: Callable[[Remote], T]) -> T:
        outcome = attempt(self._remote)
        if isinstance(outcome, Stored):
            self._is_proved = True
        if not isinstance(outcome, Refused) or self._is_proved or not self._is_unmoved(key, fingerprint):
            return outcome
        if self._is_enforced(self.quoted, key):
            self._is_proved = True
            return outcome
        if not self._is_enforced(self.unquoted, key):
            raise RemoteError(
                f"{self.properties.name} refuses to replace {shown(key)} although it is unchanged:"
                " it does not support conditions of writes; see 'mire doctor'",
                kind="conditions_unsupported",
                key=key,
            )
        self._remote, self._is_proved = self.unquoted, True
        return attempt(self._remote)

    def _is_unmoved(self, key: str, fingerprint: str) -> bool:
        try:
            return self._remote.head(key).fingerprint == fingerprint
        except NotFoundError:
            return False

    def _is_enforced(self, remote: Remote, asked: str) -> bool:
        """Whether a spelling lets the informed write through and no other; tried where nothing can be lost."""
        key = self._probe_key(asked)
        try:
            made = remote.put(key, clock.new_uuid().encode())
            right = remote.put_if(key, clock.new_uuid().encode(), Matches(made.fingerprint))
            wrong = remote.put_if(key, clock.new_uuid().encode(), Matches(made.fingerprint))
            for outcome in (right, wrong):
                if isinstance(outcome, Unknown):
                    raise outcome.error
            return isinstance(right, Stored) and isinstance(wrong, Refused)
        finally:
            # A probe that stays behind harms nobody, and what it showed is worth more than its removal.
            with suppress(RemoteError):
                remote.delete(key)
