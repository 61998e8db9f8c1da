"""Locks between real processes: one winner, no theft from other hosts, loss is told, parents are known."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.errors import LockLostError, LockTimeoutError, NotFoundError
from mire.flow.lock import hold_global, hold_models, inspect_locks, release_lock
from mire.model.lease import LockKey
from mire.wire.lockfile import decode_lease

HERE = Path(__file__).parent
KEY = LockKey("data/svc/web-1/.lock")
LONG_MS = 60_000
SHORT_MS = 1_200


class Worker:
    """A process that locks on command."""

    def __init__(self, repo: Path, hostname: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "lock_worker.py"), str(repo), hostname],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, do: str, **arguments: Any) -> None:
        """Give a command without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The answer to the oldest command not yet answered."""
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Give a command and wait for its answer."""
        self.send(do, **arguments)
        return self.answer()

    def signal(self, number: int) -> None:
        """Signal the process, by its pid."""
        os.kill(self.process.pid, number)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def worker(repo: Path) -> Iterator[Callable[[str], Worker]]:
    """Starts workers on the test's repository; ends them with the test."""
    workers: list[Worker] = []
    mire.open(repo).model("svc", "web-0").put("state", {})

    def start(hostname: str) -> Worker:
        workers.append(Worker(repo, hostname))
        return workers[-1]

    yield start
    for started in workers:
        started.end()


def lock_file(repo: Path) -> Path:
    """The lock of the model the tests lock."""
    return repo / ".swamp" / KEY


def plant(repo: Path, body: str, *, age_s: float = 0) -> Path:
    """Put a lock file there as another program would have, last touched `age_s` ago."""
    path = lock_file(repo)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body)
    if age_s:
        stamp = path.stat().st_mtime - age_s
        os.utime(path, (stamp, stamp))
    return path


def body(hostname: str, pid: int, *, ttl_ms: int = 30_000, nonce: str = "n-1") -> str:
    """A lock body as the reference writes it, with an old time in it: the file's own age decides."""
    return json.dumps(
        {
            "holder": f"dana@{hostname}",
            "hostname": hostname,
            "pid": pid,
            "acquiredAt": "2026-05-02T08:00:00.000Z",
            "ttlMs": ttl_ms,
            "nonce": nonce,
        },
        indent=2,
    )


@pytest.fixture
def dead_pid() -> int:
    """A pid no process has."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def run_race(kind: str, repo: Path, processes: int, rounds: int) -> Any:
    """What a race of many processes reports."""
    command = [sys.executable, str(HERE / "lock_race.py"), kind, str(repo), str(processes), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_fifty_processes_one_winner(repo: Path) -> None:
    """Of fifty processes that try one lock at once exactly one gets it, and nothing is left behind."""
    rounds = run_race("fresh", repo, processes=50, rounds=4)
    assert rounds == [{"won": 1, "lost": 49, "left": 0}] * 4
    assert [path.name for path in lock_file(repo).parent.iterdir()] == []


def test_fifty_stealers_one_winner(repo: Path) -> None:
    """Of fifty processes that find one expired lock exactly one takes it over."""
    rounds = run_race("stale", repo, processes=50, rounds=4)
    assert rounds == [{"won": 1, "lost": 49, "left": 0}] * 4


def test_lock_excludes(repo: Path) -> None:
    """Eight processes that add to one number carelessly lose no addition, because they hold the lock."""
    assert run_race("counter", repo, processes=8, rounds=25) == {"number": 200, "failed": 0}


def test_another_host_is_never_judged_by_its_pid(repo: Path, dead_pid: int) -> None:
    """A lock of another host whose pid does not exist here stays its holder's until it expires."""
    path = plant(repo, body("far", dead_pid))
    store = mire.open(repo, lock_timeout=0.2)
    with pytest.raises(LockTimeoutError) as caught:
        store.model("svc", "web-1").put("state", {})
    assert caught.value.exit_code == 75
    assert "dana@far" in caught.value.message
    assert "host far" in caught.value.message
    assert path.read_text() == body("far", dead_pid)


def test_a_dead_holder_on_this_host_is_replaced_at_once(repo: Path, dead_pid: int) -> None:
    """A lock of this host whose pid is gone protects nobody."""
    plant(repo, body(socket.gethostname(), dead_pid))
    assert mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {}).version == 1


def test_a_live_holder_on_this_host_keeps_its_lock(repo: Path) -> None:
    """A lock of this host whose pid lives is waited for."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        plant(repo, body(socket.gethostname(), process.pid))
        with pytest.raises(LockTimeoutError):
            mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {})
        process.communicate(b"\n")


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"holder": ', "[1]", '{"holder": "a@b"}'])
def test_unreadable_bodies_expire_by_age(repo: Path, content: str) -> None:
    """An empty or garbled lock file is respected while fresh and replaced when old."""
    plant(repo, content)
    with pytest.raises(LockTimeoutError):
        mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {})
    plant(repo, content, age_s=31)
    assert mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {}).version == 1


def test_an_expired_lock_of_another_host_is_taken_over(repo: Path, dead_pid: int) -> None:
    """A lock nobody renewed for its time to live is free, by the age of its file."""
    plant(repo, body("far", dead_pid), age_s=31)
    assert mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {}).version == 1
    assert not lock_file(repo).exists()


def test_a_stopped_holder_learns_that_its_lock_is_gone(repo: Path, worker: Callable[[str], Worker]) -> None:
    """A holder stopped past its time to live loses the lock, is told, and does not harm its successor."""
    first, second = worker("alpha"), worker("beta")
    assert first.ask("hold", id="web-1", ttl=SHORT_MS)["ok"]
    first.signal(signal.SIGSTOP)
    assert second.ask("hold", id="web-1", ttl=LONG_MS)["ok"]
    successor = lock_file(repo).read_bytes()
    first.signal(signal.SIGCONT)
    lost = first.ask("check")
    assert (lost["ok"], lost["kind"], lost["exit"]) == (False, "lock_lost", 4)
    assert first.ask("release")["kind"] == "lock_lost"
    assert lock_file(repo).read_bytes() == successor
    assert second.ask("check")["ok"]
    assert second.ask("release")["ok"]


def test_a_holder_renews_its_lock(repo: Path, worker: Callable[[str], Worker]) -> None:
    """A lock held for many times its time to live stays its holder's, and its body is whole at every look."""
    holder = worker("alpha")
    assert holder.ask("hold", id="web-1", ttl=SHORT_MS)["ok"]
    first = decode_lease(lock_file(repo).read_bytes())
    store = mire.open(repo, lock_timeout=SHORT_MS * 3 / 1000)
    with pytest.raises(LockTimeoutError):
        store.model("svc", "web-1").put("state", {})
    seen = decode_lease(lock_file(repo).read_bytes())
    assert first is not None
    assert seen is not None
    assert seen.acquired_at > first.acquired_at
    assert (seen.nonce, seen.holder) == (first.nonce, "tester@alpha")
    assert holder.ask("check")["ok"]


def test_renewing_never_shows_a_partial_body(repo: Path, worker: Callable[[str], Worker]) -> None:
    """A reader that looks all the time while a lock is renewed very often never sees a broken body."""
    holder = worker("alpha")
    assert holder.ask("hold", id="web-1", ttl=3)["ok"]
    path = lock_file(repo)
    looks = {path.read_bytes() for _ in range(20_000)}
    assert len(looks) > 1
    assert all((lease := decode_lease(look)) is not None and lease.holder == "tester@alpha" for look in looks)


def test_two_hosts_write_one_name(repo: Path, worker: Callable[[str], Worker]) -> None:
    """Two processes that believe to be on two hosts interleave writes without losing or mixing any."""
    workers = {name: worker(name) for name in ("alpha", "beta")}
    for started in workers.values():
        started.send("put", id="web-1", count=40)
    versions = {name: started.answer()["versions"] for name, started in workers.items()}
    assert sorted(versions["alpha"] + versions["beta"]) == list(range(1, 81))
    model = mire.open(repo).model("svc", "web-1")
    for name, numbers in versions.items():
        assert [model.get("state", number).json() for number in numbers] == [{"by": name, "n": n} for n in range(40)]
    assert model.latest("state") == 80


def test_structural_work_waits_for_writers(repo: Path, worker: Callable[[str], Worker]) -> None:
    """The global lock is granted only after every model lock is gone."""
    writer, structural = worker("alpha"), worker("beta")
    assert writer.ask("hold", id="web-1", ttl=LONG_MS)["ok"]
    with pytest.raises(LockTimeoutError) as caught, hold_global(mire.open(repo, lock_timeout=0.3).datastore):
        pass
    assert caught.value.names["lock_key"] == KEY
    assert not (repo / ".swamp/.datastore.lock").exists()
    structural.send("hold-global", ttl=LONG_MS)
    assert writer.ask("release")["ok"]
    assert structural.answer()["ok"]
    assert (repo / ".swamp/.datastore.lock").exists()


def test_writers_wait_for_structural_work(repo: Path, worker: Callable[[str], Worker]) -> None:
    """While the global lock is held no model can be written, and the error names its holder."""
    structural, writer = worker("alpha"), worker("beta")
    assert structural.ask("hold-global", ttl=LONG_MS)["ok"]
    with pytest.raises(LockTimeoutError) as caught:
        mire.open(repo, lock_timeout=0.3).model("svc", "web-1").put("state", {})
    assert caught.value.names["holder"] == "tester@alpha"
    assert not lock_file(repo).exists()
    writer.send("put", id="web-1", count=1)
    assert structural.ask("release")["ok"]
    assert writer.answer()["versions"] == [1]


def test_a_stale_global_lock_stops_nobody(repo: Path, dead_pid: int) -> None:
    """The global lock of a dead process is removed by the next writer."""
    (repo / ".swamp").mkdir()
    path = repo / ".swamp/.datastore.lock"
    path.write_text(body(socket.gethostname(), dead_pid))
    assert mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {}).version == 1
    assert not path.exists()


def test_structural_work_ignores_stale_model_locks(repo: Path, dead_pid: int) -> None:
    """A dead writer's lock does not hold up structural work."""
    plant(repo, body(socket.gethostname(), dead_pid))
    store = mire.open(repo, lock_timeout=0)
    with store.hold():
        assert [report.key for report in store.locks()] == [".datastore.lock", KEY]


def test_structural_work_in_one_namespace_leaves_others_alone(repo: Path) -> None:
    """A namespaced store takes both generations of its global key, and drains only its own models."""
    (repo / ".swamp.yaml").write_text("datastore: {type: filesystem, namespace: team-a}\n")
    foreign = repo / ".swamp/team-b/data/svc/x/.lock"
    foreign.parent.mkdir(parents=True)
    foreign.write_text(body("far", 1))
    with mire.open(repo, lock_timeout=0).hold():
        assert (repo / ".swamp/.locks/team-a.lock").exists()
        assert (repo / ".swamp/team-a/.datastore.lock").exists()
    assert not (repo / ".swamp/.locks/team-a.lock").exists()


def test_a_child_works_under_its_parents_lock(repo: Path, tmp_path: Path) -> None:
    """A command started by the holder of a lock does not wait for its parent; a stranger does."""
    store = mire.open(repo)
    command = [sys.executable, "-m", "mire", "--repo", str(repo), "--lock-timeout", "0"]
    command += ["put", "svc", "web-1", "state"]
    with store.model("svc", "web-1").hold():
        child = subprocess.run(command, input=b"from a child", check=False, capture_output=True)
        stranger_environ = {k: v for k, v in os.environ.items() if not k.startswith("SWAMP_")}
        stranger = subprocess.run(command, input=b"x", check=False, capture_output=True, env=stranger_environ)
    assert child.returncode == 0, child.stderr
    assert stranger.returncode == 75
    assert store.model("svc", "web-1").get("state").bytes() == b"from a child"
    assert not [name for name in os.environ if name.startswith("SWAMP_LOCK")]


def test_an_older_reference_parent_is_known_by_its_pid(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock whose pid is in SWAMP_LOCK_HOLDER_PID is our parent's, on our own host only."""
    parent = os.getppid()
    monkeypatch.setenv("SWAMP_LOCK_HOLDER_PID", str(parent))
    plant(repo, body("far", parent))
    with pytest.raises(LockTimeoutError):
        mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {})
    plant(repo, body(socket.gethostname(), parent))
    assert mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {}).version == 1


def test_a_thread_may_lock_twice_another_may_not(repo: Path) -> None:
    """Holding is reentrant in one thread, and exclusive between threads of one process."""
    store = mire.open(repo, lock_timeout=0)
    model = store.model("svc", "web-1")
    failures: list[BaseException] = []

    def other() -> None:
        try:
            model.put("state", "other")
        except LockTimeoutError as error:
            failures.append(error)

    with model.hold(), model.hold():
        model.put("state", "mine")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(failures) == 1
    assert not lock_file(repo).exists()
    other()
    assert model.get("state").text() == "other"


def test_force_release_takes_exactly_the_lock_that_was_seen(repo: Path, worker: Callable[[str], Worker]) -> None:
    """Releasing by force frees the lock and its holder is told before its next step."""
    holder = worker("alpha")
    assert holder.ask("hold", id="web-1", ttl=LONG_MS)["ok"]
    ds = mire.open(repo).datastore
    report = release_lock(ds, KEY)
    assert report.lease is not None
    assert report.lease.holder == "tester@alpha"
    assert inspect_locks(ds) == []
    assert holder.ask("check")["kind"] == "lock_lost"
    with pytest.raises(NotFoundError):
        release_lock(ds, KEY)


def test_garbled_locks_are_shown_and_can_be_released(repo: Path) -> None:
    """An empty lock file is reported as held by nobody known, and can be released by force."""
    plant(repo, "")
    ds = mire.open(repo).datastore
    (report,) = inspect_locks(ds)
    assert (report.key, report.lease, report.is_stale) == (KEY, None, False)
    release_lock(ds, KEY)
    assert not lock_file(repo).exists()


def test_losing_the_lock_before_a_write_publishes_nothing(repo: Path) -> None:
    """A put whose lock was taken away fails before anything becomes visible, and leaves nothing behind."""
    store = mire.open(repo)
    model = store.model("svc", "web-1")
    model.put("state", "old")
    before = sorted(map(str, repo.rglob("*")))
    with pytest.raises(LockLostError), model.hold():  # noqa: PT012 - the loss must happen inside the hold
        release_lock(store.datastore, KEY)
        model.put("state", "newer")
    assert sorted(map(str, repo.rglob("*"))) == before
    assert model.get("state").text() == "old"


def test_content_is_read_before_the_lock_is_taken(repo: Path) -> None:
    """A slow producer keeps nobody else from writing the model."""
    model = mire.open(repo, lock_timeout=0).model("svc", "web-1")

    class Slow:
        def __init__(self) -> None:
            self._pieces = iter([b"slow", b""])

        def read(self, _size: int = -1) -> bytes:
            model.put("state", "quick")
            return next(self._pieces)

    model.put("state", Slow())
    assert [model.get("state", number).text() for number in model.versions("state")] == ["quick", "quick", "slow"]


def test_the_wait_ends_when_the_holder_lets_go(repo: Path, worker: Callable[[str], Worker]) -> None:
    """A waiter gets the lock as soon as it is released."""
    holder, waiter = worker("alpha"), worker("beta")
    assert holder.ask("hold", id="web-1", ttl=LONG_MS)["ok"]
    waiter.send("hold", id="web-1", ttl=LONG_MS)
    assert holder.ask("release")["ok"]
    assert waiter.answer()["ok"]
    lease = decode_lease(lock_file(repo).read_bytes())
    assert lease is not None
    assert lease.hostname == "beta"


def test_holding_several_models_takes_them_in_one_order(repo: Path) -> None:
    """Models are locked in sorted order whatever order they are named in, each once."""
    store = mire.open(repo)
    models = [store.model("svc", name).ref for name in ("b", "a", "b")]
    with hold_models(store.datastore, models):
        assert [report.key for report in store.locks()] == ["data/svc/a/.lock", "data/svc/b/.lock"]
    assert store.locks() == []


def test_a_lock_body_is_the_references(repo: Path) -> None:
    """Our lock file has the fields of the reference's, in its order, without a newline."""
    golden = json.loads((HERE.parent / "golden" / "lock-body.json").read_text())
    store = mire.open(repo)
    with store.model("svc", "web-1").hold():
        text = lock_file(repo).read_text()
    ours = json.loads(text)
    assert list(ours) == list(golden)
    assert text == json.dumps(ours, indent=2)
    assert (ours["hostname"], ours["pid"], ours["ttlMs"]) == (socket.gethostname(), os.getpid(), 30_000)


FORKED = """
import os, sys, mire
store = mire.open(sys.argv[1], lock_timeout=0)
model = store.model("svc", "web-1")
{body}
"""


def run_program(repo: Path, body: str) -> str:
    """What a program prints, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED.format(body=body), str(repo)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_store_opened_before_a_fork_locks_as_the_child(repo: Path) -> None:
    """A daemon that opens, forks and lets its parent go holds its locks under its own pid."""
    body = """
ready, done = os.pipe(), os.pipe()
if os.fork() == 0:
    with model.hold():
        os.write(ready[1], b"x")
        os.read(done[0], 1)
    os._exit(0)
os.read(ready[0], 1)
lease = store.locks()[0].lease
print(lease.pid != os.getpid(), store.locks()[0].is_stale)
os.write(done[1], b"x")
os.wait()
"""
    assert run_program(repo, body) == "True False\n"


def test_a_child_forked_inside_a_hold_can_write_afterwards(repo: Path) -> None:
    """A child works under its parent's lock while it is held, and takes its own when it is gone."""
    body = """
gone = os.pipe()
with model.hold():
    child = os.fork()
    if child == 0:
        inside = model.put("state", "inside").version
        os.read(gone[0], 1)
        after = model.put("state", "after").version
        os._exit(0 if (inside, after) == (1, 2) else 1)
    # The child's first put is done when version 1 is there, unless the child has ended before.
    while not model.versions("state") and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        pass
os.write(gone[1], b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_program(repo, body) == "0\n"


def test_a_write_inside_a_hold_does_not_wait_for_structural_work(repo: Path) -> None:
    """Structural work waits for the hold, so a hold that waited for it would wait for ever."""
    store = mire.open(repo, lock_timeout=0)
    model = store.model("svc", "web-1")
    with model.hold():
        (repo / ".swamp/.datastore.lock").write_text(body("far", 1))
        assert model.put("state", "x").version == 1
        assert store.model("svc", "web-2").put("state", "x").version == 1
    with pytest.raises(LockTimeoutError):
        model.put("state", "x")


def test_a_dangling_link_in_the_place_of_a_lock_times_out(repo: Path) -> None:
    """A lock that cannot be read and cannot be created is waited for no longer than asked."""
    path = lock_file(repo)
    path.parent.mkdir(parents=True)
    path.symlink_to("nowhere")
    with pytest.raises(LockTimeoutError):
        mire.open(repo, lock_timeout=0.1).model("svc", "web-1").put("state", {})


@pytest.mark.parametrize(("age_s", "ttl_ms"), [(-100_000, 30_000), (5_000, 9 * 10**15)])
def test_no_lock_lives_for_ever(repo: Path, age_s: float, ttl_ms: int) -> None:
    """Neither a time in the future nor an absurd time to live keeps everybody out."""
    plant(repo, body("far", 1, ttl_ms=ttl_ms), age_s=age_s)
    assert mire.open(repo, lock_timeout=0).model("svc", "web-1").put("state", {}).version == 1


def test_executions_that_begin_in_one_millisecond_are_kept_apart(repo: Path) -> None:
    """Files are named by the start, so one of two that begin together is recorded a moment later."""
    outputs = mire.open(repo).outputs
    definition = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
    started: list[str] = []

    def start() -> None:
        started.extend(outputs.start("svc", definition, "deploy").id for _ in range(25))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(output.id for output in outputs.list()) == sorted(started)
    assert len(set(started)) == 100
