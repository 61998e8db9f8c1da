"""The control plane: records, their creation by one of many, and the format marker of a remote."""

import threading
from collections.abc import Callable

import pytest

from mire.edge.memory import MemoryRemote
from mire.edge.remote import Stream
from mire.errors import DeniedError, FormatError, InputError, RemoteError
from mire.flow.control import ControlStore, check_remote_marker, fetch_datastore_record
from mire.model.names import SOLO, Namespace
from mire.testing.misbehaving import MisbehavingRemote

GREEN = Namespace("green")
MARKER = "_control/datastore-format"


@pytest.fixture
def memory() -> MemoryRemote:
    """An empty store."""
    return MemoryRemote()


@pytest.fixture
def remote(memory: MemoryRemote) -> MisbehavingRemote:
    """That store, with faults to come."""
    return MisbehavingRemote(memory)


@pytest.fixture
def control(remote: MisbehavingRemote) -> ControlStore:
    """Its records, of no namespace."""
    return ControlStore(remote)


def test_none_means_not_there_and_nothing_else(remote: MisbehavingRemote, control: ControlStore) -> None:
    """Whatever else keeps a record from being read is an error."""
    assert control.get("a") is None
    remote.fail("get", DeniedError("no right"))
    with pytest.raises(DeniedError):
        control.get("a")


def test_the_namespace_is_asked_for_at_every_call(memory: MemoryRemote) -> None:
    """A store bound to a namespace later reads, writes and lists there; the August reference listed elsewhere."""
    bound = {"to": SOLO}
    control = ControlStore(memory, lambda: bound["to"])
    control.put("a/1", b"root")
    bound["to"] = GREEN
    assert control.get("a/1") is None
    assert control.put_if_absent("a/1", b"green") is True
    control.put("a/2", b"green")
    assert control.list("a") == ["a/1", "a/2"]
    control.delete("a/2")
    assert [stat.key for stat in memory.list()] == ["_control/a/1", "green/_control/a/1"]


@pytest.mark.parametrize(
    "call",
    [
        lambda control: control.put("../a", b""),
        lambda control: control.get("a//b"),
        lambda control: control.delete(""),
        lambda control: control.put_if_absent("a/", b""),
        lambda control: control.list("a/../b"),
    ],
    ids=["put", "get", "delete", "put_if_absent", "list"],
)
def test_bad_keys_reach_no_store(
    remote: MisbehavingRemote, control: ControlStore, call: Callable[[ControlStore], object]
) -> None:
    """A key that could lead elsewhere is refused by every call, before anything is sent."""
    with pytest.raises(InputError, match="control key"):
        call(control)
    assert not remote.calls


def test_a_creation_whose_answer_was_lost_is_told_to_its_creator_x11(
    remote: MisbehavingRemote, control: ControlStore
) -> None:
    """X11: the creator learns that it was him, once, also when the record was empty; others learn that it was not."""
    for data in (b"claim", b""):
        remote.lose("put_if")
        assert control.put_if_absent(f"a{len(data)}", data) is True
        assert control.put_if_absent(f"a{len(data)}", data) is False


def test_a_creation_that_did_not_happen_is_tried_again(remote: MisbehavingRemote, control: ControlStore) -> None:
    """A lost answer to a write that never arrived is settled by writing."""
    remote.lose("put_if", is_applied=False, times=2)
    assert control.put_if_absent("a", b"claim") is True
    assert control.get("a") == b"claim"


def test_another_creator_s_equal_record_is_not_ours(remote: MisbehavingRemote, control: ControlStore) -> None:
    """Two who create the same bytes are told apart by their tokens: exactly one is told yes."""
    other = ControlStore(remote)
    remote.lose("put_if", is_applied=False)
    remote.run("get", lambda: other.put_if_absent("a", b"same"))
    assert control.put_if_absent("a", b"same") is False


def test_a_late_creation_of_ours_is_recognized(remote: MisbehavingRemote, control: ControlStore) -> None:
    """A first write that arrives after we looked makes the second one refused: it is ours all the same."""
    remote.delay("put_if")
    assert control.put_if_absent("a", b"claim") is True
    assert dict(remote.calls) == {"put_if": 2, "get": 2}


def test_a_creation_nobody_answers_is_an_error(remote: MisbehavingRemote, control: ControlStore) -> None:
    """Neither yes nor no is said when nobody knows."""
    remote.lose("put_if", is_applied=False, times=100)
    with pytest.raises(RemoteError, match="nobody knows") as caught:
        control.put_if_absent("a", b"claim")
    assert caught.value.transient


@pytest.mark.parametrize("is_lost", [False, True])
def test_one_of_many_creators_is_told_yes(memory: MemoryRemote, *, is_lost: bool) -> None:
    """Of fifty threads exactly one is told that it created the record, also when all answers are lost."""
    remote = MisbehavingRemote(memory)
    if is_lost:
        remote.lose("put_if", times=50)
    start = threading.Barrier(50)
    told: list[bool] = []

    def create() -> None:
        start.wait()
        told.append(ControlStore(remote).put_if_absent("fire", b"same"))

    threads = [threading.Thread(target=create) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [False] * 49 + [True]


def test_a_store_without_a_marker_may_be_written(remote: MisbehavingRemote) -> None:
    """No marker means our format; looking costs one request, two in a namespace."""
    assert check_remote_marker(remote) is None
    assert dict(remote.calls) == {"get_stream": 1}
    assert check_remote_marker(remote, GREEN) is None
    assert dict(remote.calls) == {"get_stream": 3}


@pytest.mark.parametrize("namespace", [SOLO, GREEN])
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"format": 3}', "datastore_format_unsupported"),
        (b"", "datastore_format_marker_invalid"),
        (b"[" * 100_000, "datastore_format_marker_invalid"),
    ],
)
def test_a_newer_or_garbled_marker_refuses_the_store(
    remote: MisbehavingRemote, namespace: Namespace, data: bytes, kind: str
) -> None:
    """The marker at the root of the datastore counts for every namespace."""
    remote.put(MARKER, data)
    with pytest.raises(FormatError) as caught:
        check_remote_marker(remote, namespace)
    assert caught.value.kind == kind


def test_a_marker_in_our_namespace_forbids_writing_x9(remote: MisbehavingRemote) -> None:
    """X9: a marker that an old program moved into our namespace stops our writes, and nobody else's."""
    remote.put(f"green/{MARKER}", b'{"format": 3}')
    reason = check_remote_marker(remote, GREEN)
    assert reason is not None
    assert "format 3" in reason
    assert check_remote_marker(remote) is None
    assert check_remote_marker(remote, Namespace("blue")) is None


@pytest.mark.parametrize("skip", [0, 1])
def test_a_marker_nobody_can_read_forbids_writing(remote: MisbehavingRemote, skip: int) -> None:
    """Whichever of the two looks fails, reading goes on and the reason is told."""
    remote.fail("get_stream", DeniedError("no right to read it"), skip=skip)
    reason = check_remote_marker(remote, GREEN)
    assert reason is not None
    assert reason.endswith("no right to read it")


class SilentRemote(MisbehavingRemote):
    """A remote that does not answer until it is told to."""

    def __init__(self, remote: MemoryRemote) -> None:
        super().__init__(remote)
        self.answers = threading.Event()

    def get_stream(self, key: str) -> Stream:
        """Wait for the word."""
        self.answers.wait()
        return super().get_stream(key)


def test_a_marker_that_takes_too_long_forbids_writing(memory: MemoryRemote) -> None:
    """A store that does not answer before the deadline is not waited for."""
    remote = SilentRemote(memory)
    reason = check_remote_marker(remote, GREEN, deadline_ms=30)
    assert reason is not None
    assert "not answered in 0.03 s" in reason
    remote.answers.set()


def test_a_record_of_the_datastore_has_no_limit(remote: MisbehavingRemote) -> None:
    """Only the marker is cut: other records of the whole datastore are read in full, or an error says why not."""
    remote.put("_control/large", b"x" * 3_000_000)
    assert fetch_datastore_record(remote, "large") == b"x" * 3_000_000
    remote.fail("get_stream", DeniedError("no right"))
    with pytest.raises(DeniedError):
        fetch_datastore_record(remote, "large")
