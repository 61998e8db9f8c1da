"""A server of objects on the loopback interface, in a thread of this process, that misbehaves when told to.

Owns: the thread and its loop, the server's clock, carrying out faults, counting.
Must not know: S3, GCS, what is stored.
Keeps: it listens on 127.0.0.1 only; every request that came whole is counted once; an error inside the server is
raised when it stops, never lost.
"""

import asyncio
import contextlib
import importlib.util
import json
import socket
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from email.utils import formatdate
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qsl

from mire.testing import faults
from mire.testing.faults import Action, Faults, Hold, KeyMatch, Rule
from mire.testing.httpwire import Answer, Connection, Outcome, Reply, Request
from mire.testing.traffic import Entry, Traffic

_LAST_TURNS: Final = 6
_BACKLOG: Final = 1024
_STOP_TIMEOUT_S: Final = 10
_CONTROL: Final = "/-/"
"""No bucket has such a name."""


@dataclass(slots=True)
class Call:
    """A request that was understood: which operation it is, and on what."""

    request: Request
    operation: str
    bucket: str = ""
    key: str = ""
    params: dict[str, str] = field(default_factory=dict)
    short: faults.ShortListing | None = None
    """How a listing is to be cut short, when a fault says so."""


def params_of(query: str) -> dict[str, str]:
    """The parameters of a query, decoded; '+' is a space, as obstore spells it."""
    return dict(parse_qsl(query, keep_blank_values=True)) if query else {}


class ObjectServer(ABC):
    """The frame of a test server; a context manager that serves from entering to leaving."""

    def __init__(self, *, port: int = 0, seed: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.clock_offset_s = 0.0
        """How far the server's clock is ahead of ours."""
        self.traffic = Traffic()
        self.faults = Faults(seed)
        self.port = port
        self._tls = tls
        self._state = threading.RLock()
        self._date: tuple[int, str] = (0, "")
        self._errors: list[BaseException] = []
        self._connections: set[Connection] = set()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def now_s(self) -> float:
        """The server's clock."""
        return time.time() + self.clock_offset_s

    def counts(self) -> dict[str, int]:
        """Requests per operation since the start or the last `reset`."""
        return self.traffic.counts()

    def log(self) -> list[Entry]:
        """Every request since the start or the last `reset`: (operation, bucket, key, status)."""
        return self.traffic.log()

    def reset(self) -> None:
        """Count from zero."""
        self.traffic.reset()

    def inject(
        self,
        action: Action,
        *,
        operation: str = "*",
        key: KeyMatch = None,
        skip: int = 0,
        times: int | None = 1,
        chance: float = 1.0,
    ) -> Rule:
        """Make requests misbehave: those of an operation and key (globs, or a predicate on the key).

        The first `skip` of them pass, then `times` of them are hit (None: all); `chance` is drawn from the seed.
        """
        rule = Rule(action=action, operation=operation, key=key, skip=skip, times=times, chance=chance)
        return self.faults.add(rule)

    def hold(
        self, *, operation: str = "*", key: KeyMatch = None, skip: int = 0, times: int | None = 1, after: bool = False
    ) -> Hold:
        """Make a request wait before it is applied, or (`after`) between applying and answering."""
        hold = self.faults.add_hold(Hold())
        action = faults.RunAfter(hold.wait) if after else faults.Run(hold.wait)
        self.inject(action, operation=operation, key=key, skip=skip, times=times)
        return hold

    def start(self) -> Self:
        """Begin to listen; after `stop` it listens on the same port again, with the same objects."""
        listener = socket.create_server(("127.0.0.1", self.port), backlog=_BACKLOG)
        self.port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listener, ready), name="object-server", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Drop every connection and end; raise what went wrong inside."""
        self.faults.clear()
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)
            if self._thread.is_alive():
                raise RuntimeError(f"the test server did not stop in {_STOP_TIMEOUT_S} s")
        self._thread = self._loop = self._stopping = None
        if self._errors:
            errors, self._errors = self._errors, []
            raise RuntimeError(f"the test server failed {len(errors)} times; the first: {errors[0]!r}") from errors[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _classify(self, request: Request) -> Call:
        """Understand a request."""

    @abstractmethod
    def _apply(self, call: Call) -> Reply:
        """Carry a request out; what the dialect calls an error is a reply."""

    @abstractmethod
    def _failure(self, call: Call, status: int, code: str) -> Reply:
        """An error in the server's dialect."""

    def _run(self, listener: socket.socket, ready: threading.Event) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve(listener, ready))

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        answer: Answer = self._answer
        server = await loop.create_server(
            lambda: Connection(answer, self._date_text, self._connections),
            sock=listener,
            backlog=_BACKLOG,
            ssl=self._tls,
        )
        ready.set()
        await self._stopping.wait()
        # Nobody is accepted any more, and who just was comes to be known: a server that is closed before that leaves
        # the socket open. Three turns of the loop for it, one for a transport to say that it is lost, one to close.
        loop.remove_reader(listener)
        for _ in range(_LAST_TURNS):
            tasks = [task for connection in list(self._connections) if (task := connection.close()) is not None]
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)
        server.close()
        await server.wait_closed()

    def _date_text(self) -> str:
        second = int(self.now_s())
        if second != self._date[0]:
            self._date = (second, formatdate(second, usegmt=True))
        return self._date[1]

    def _answer(self, request: Request) -> Any:
        if request.path.startswith(_CONTROL):
            return self._control(request)
        try:
            call = self._classify(request)
        except Exception as error:  # noqa: BLE001 - kept, and raised by stop()
            self._errors.append(error)
            return Reply(500)
        actions = self.faults.actions_for(call.operation, call.key)
        if actions:
            return self._misbehave(call, actions)
        return self._finish(call, self._carry_out(call))

    def _control(self, request: Request) -> Reply:
        """Counts for a client in another process: `GET /-/counts`, `POST /-/reset`; neither is counted."""
        if (request.method, request.path) == ("POST", f"{_CONTROL}reset"):
            self.reset()
        elif (request.method, request.path) != ("GET", f"{_CONTROL}counts"):
            return Reply(404)
        tallies = {name: asdict(tally) for name, tally in self.traffic.tallies().items()}
        return Reply(200, [("Content-Type", "application/json")], json.dumps(tallies).encode())

    def _carry_out(self, call: Call) -> Reply:
        try:
            with self._state:
                return self._apply(call)
        except Exception as error:  # noqa: BLE001 - kept, and raised by stop()
            self._errors.append(error)
            return self._failure(call, 500, "")

    def _finish(self, call: Call, reply: Outcome) -> Outcome:
        entry = Entry(call.operation, call.bucket, call.key, None if reply is None else reply.status)
        self.traffic.record(entry, len(call.request.body), 0 if reply is None else reply.sent_bytes)
        return reply

    async def _misbehave(self, call: Call, actions: list[Action]) -> Outcome:
        for action in actions:
            match action:
                case faults.Delay():
                    await asyncio.sleep(action.seconds)
                case faults.Run():
                    await self._in_thread(action.callback)
                case faults.ShortListing():
                    call.short = action
                case _:
                    pass
        for action in actions:
            match action:
                case faults.Fail():
                    reply = self._failure(call, action.status, action.code)
                    reply.headers.extend(action.headers)
                    return self._finish(call, reply)
                case faults.Drop():
                    return self._finish(call, None)
                case _:
                    pass
        return self._finish(call, await self._spoil(call, self._carry_out(call), actions))

    async def _spoil(self, call: Call, reply: Reply, actions: list[Action]) -> Outcome:
        for action in actions:
            match action:
                case faults.RunAfter():
                    await self._in_thread(action.callback)
                case faults.ApplyThenDrop():
                    return None
                case faults.ApplyThenFail():
                    return self._failure(call, action.status, action.code)
                case faults.Truncate():
                    reply = replace(reply, cut_at=action.at_bytes)
                case faults.Corrupt() if action.at_byte < len(reply.body):
                    body = bytearray(reply.body)
                    body[action.at_byte] ^= 0xFF
                    reply = replace(reply, body=bytes(body))
                case _:
                    pass
        return reply

    async def _in_thread(self, callback: Callable[[], object]) -> None:
        """Run in a thread of its own: a pool would let held requests starve the next callback."""
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def work() -> None:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - kept, and raised by stop()
                self._errors.append(error)
            # A server that stopped meanwhile has closed its loop; nobody waits then.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=work, name="object-server-callback", daemon=True).start()
        await done.wait()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if importlib.util.find_spec("uvloop") is None:
        return None
    return importlib.import_module("uvloop").new_event_loop  # type: ignore[no-any-return]
