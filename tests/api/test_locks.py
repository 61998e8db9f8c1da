"""Writing while others write: holds, threads, locks of other hosts."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import mire
from mire.model.lease import Host

Place = Callable[..., Path]


def test_writes_inside_a_hold_do_not_wait_for_it(model: mire.Model, place: Place) -> None:
    """A block that holds its model can put, append, rename and delete; the lock stays until the end."""
    with model.hold() as hold:
        model.put("n", "1", streaming=True)
        model.append("n", "2")
        with model.hold():
            model.rename("n", "m")
        assert place(".lock").is_file()
        model.mark_deleted("m")
        model.delete("m")
        hold.check()
        assert place(".lock").is_file()
    assert not place(".lock").exists()


def test_writes_inside_a_global_hold(store: mire.Store, repo: Path) -> None:
    """Structural work may write models, and is announced by the global lock."""
    with store.hold():
        store.model("t", "i").put("n", "x")
        assert (repo / ".swamp/.datastore.lock").is_file()
        assert [report.key for report in store.locks()] == [".datastore.lock"]
    assert store.locks() == []
    assert store.model("t", "i").get("n").text() == "x"


def test_the_lock_is_free_after_an_error(model: mire.Model, place: Place) -> None:
    """An exception in the block passes through, and the lock does not outlive it."""
    with pytest.raises(ZeroDivisionError), model.hold():
        raise ZeroDivisionError
    assert not place(".lock").exists()
    model.put("n", "x")


def test_a_lock_body_is_what_the_reference_reads(model: mire.Model, place: Place) -> None:
    """Members, order and form of the body are those of the reference's own."""
    golden = Path(__file__).parents[1] / "golden/lock-body.json"
    with model.hold():
        text = place(".lock").read_text()
    body = json.loads(text)
    assert list(body) == list(json.loads(golden.read_text()))
    assert text == json.dumps(body, indent=2)
    assert body["ttlMs"] == 30_000


def test_a_lost_lock_stops_the_writer(model: mire.Model, place: Place) -> None:
    """A holder whose lock was removed is told at its next write, and at the latest at the end."""
    with pytest.raises(mire.LockLostError), model.hold():
        place(".lock").unlink()
    hold = model.hold()
    held = hold.__enter__()
    place(".lock").unlink()
    with pytest.raises(mire.LockLostError):
        held.check()
    with pytest.raises(mire.LockLostError):
        model.put("n", "x")
    with pytest.raises(mire.LockLostError):
        hold.__exit__(None, None, None)
    assert model.versions("n") == []


def in_a_thread(call: Callable[[], object]) -> object:
    """What a call gives, or the error it raises, in a thread of its own."""
    results: list[object] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - the caller looks at it
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    return results[0]


def test_another_host_waits_and_is_not_robbed(repo: Path) -> None:
    """A pid means nothing on another host: while the lock is fresh, only waiting helps."""
    ours = mire.open(repo).model("t", "i")
    elsewhere = mire.open(repo, lock_timeout=0, host=Host(hostname="elsewhere", pid=1, user="ada")).model("t", "i")
    with ours.hold():
        error = in_a_thread(lambda: elsewhere.put("n", "x"))
        assert isinstance(error, mire.LockTimeoutError)
        assert error.exit_code == 75
        ours.put("n", "mine")
    with elsewhere.hold():
        # The pid 1 lives here, and "elsewhere" is another machine: neither makes the lock ours.
        error = in_a_thread(lambda: mire.open(repo, lock_timeout=0).model("t", "i").put("n", "x"))
        assert isinstance(error, mire.LockTimeoutError)
        assert (error.names["holder"], error.names["hostname"]) == ("ada@elsewhere", "elsewhere")
    assert elsewhere.put("n", "theirs").version == 2


def test_threads_that_write_one_name_take_turns(store: mire.Store) -> None:
    """Eight threads with ten puts each get eighty versions, each with its own content."""
    model = store.model("t", "i")
    errors: list[BaseException] = []
    written: dict[int, str] = {}
    start = threading.Barrier(8)

    def work(worker: int) -> None:
        try:
            start.wait(30)
            for step in range(10):
                text = f"{worker}-{step}"
                written[model.put("n", text).version] = text
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sorted(written) == list(range(1, 81))
    assert {number: model.get("n", number).text() for number in model.versions("n")} == written


def test_threads_on_different_models_do_not_meet(store: mire.Store) -> None:
    """A thread that holds one model does not keep another thread from the next."""
    done = threading.Event()

    def work() -> None:
        store.model("t", "other").put("n", "x")
        done.set()

    with store.model("t", "held").hold():
        thread = threading.Thread(target=work)
        thread.start()
        assert done.wait(30)
        thread.join(30)


def test_a_hold_of_one_thread_is_not_a_hold_of_another(repo: Path) -> None:
    """Reentrance is per thread: a second thread has to wait for the first."""
    model = mire.open(repo, lock_timeout=0).model("t", "i")
    with model.hold():
        assert isinstance(in_a_thread(lambda: model.put("n", "x")), mire.LockTimeoutError)
    assert isinstance(in_a_thread(lambda: model.put("n", "x")), mire.Metadata)
