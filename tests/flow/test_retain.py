"""Retention on disk: dry runs tell the truth, writers and crashes do no harm, damage is left alone."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge import clock
from mire.errors import DeniedError, LockTimeoutError
from mire.flow.hold import hold
from mire.flow.retain import Decision, Report, plan_retain, retain
from mire.model.names import DataName, Version

HERE = Path(__file__).parent
FLOW = "9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21"
RUN = "c4e1a7b9-0f52-4d6d-b0c3-71f8e2a95d34"


@pytest.fixture
def later() -> datetime:
    """Ten days from now: data put with a lifetime of a day has expired by then."""
    return clock.now() + timedelta(days=10)


def versions_of(repo: Path) -> dict[tuple[str, str, int], bytes]:
    """Every version a reader sees, with its content."""
    return {
        (str(model.ref), row.name, number): model.get(row.name, number).bytes()
        for model in mire.open(repo).models()
        for row in model.names()
        for number in model.versions(row.name)
    }


def owner(run: str = RUN) -> mire.Owner:
    """A step of a run."""
    return mire.Owner(owner_type="workflow-step", owner_ref="step", workflow_id=FLOW, workflow_run_id=run)  # type: ignore[arg-type]


def furnish(store: mire.Store) -> None:
    """One name for every rule, in two models."""
    kept = store.runs.start(FLOW, "sweep")
    one, two = store.model("svc/web", "web-1"), store.model("aws/ec2/vpc", "vpc-1")
    for number in range(1, 6):
        one.put("counted", f"{number}" * number, version_policy=2)
        one.put("counted-held", f"{number}", version_policy=2)
        two.put("aged", f"{number}", version_policy="3d")
        two.put("plenty", f"{number}")
    one.put("expired", "x", lifetime="1d")
    one.put("expired", "yy", lifetime="2d")
    one.put("expired-held", "x", lifetime="1d")
    one.put("lasting", "x", lifetime="1y")
    one.put("ephemeral", "x", lifetime="ephemeral")
    two.put("of-run", "x", lifetime="workflow", owner=owner(kept.id))
    two.put("of-lost-run", "x", lifetime="workflow", owner=owner())
    two.put("of-lost-job", "x", lifetime="job", owner=owner())
    two.put("of-nothing", "x", lifetime="job")
    two.put("renamed", "x", lifetime="1d")
    two.rename("renamed", "renamed-to")
    two.put("ended", "x", lifetime="1d")
    two.mark_deleted("ended")
    hold(store.datastore, one.ref, DataName("counted-held"), Version(1))
    hold(store.datastore, one.ref, DataName("expired-held"))


def told(report: Report) -> dict[str, tuple[str, tuple[int, ...], bool, int]]:
    """What a report says goes, by name."""
    return {item.name: (item.reason, item.versions, item.is_whole_name, item.size_bytes) for item in report.decisions}


def test_every_rule(store: mire.Store, later: datetime) -> None:
    """Each name meets the fate its lifetime, its policy and its holds ask for."""
    furnish(store)
    report = retain(store.datastore, now=later)
    assert told(report) == {
        "aged": ("version-age", (1, 2, 3, 4), False, 4),
        "of-lost-job": ("job-deleted", (1,), True, 1),
        "of-lost-run": ("workflow-deleted", (1,), True, 1),
        "renamed-to": ("duration-expired", (1,), True, 1),
        "counted": ("version-count", (1, 2, 3), False, 6),
        "counted-held": ("version-count", (2, 3), False, 2),
        "expired": ("duration-expired", (1, 2), True, 3),
    }
    assert (report.names_removed, report.versions_removed, report.bytes_reclaimed) == (4, 14, 18)
    assert [(item.name, "workflowRunId" in item.message) for item in report.findings] == [("of-nothing", True)]
    one = store.model("svc/web", "web-1")
    assert (one.versions("counted"), one.versions("counted-held")) == ([4, 5], [1, 4, 5])
    assert (one.get("counted").text(), one.versions("expired")) == ("55555", [])
    assert one.put("expired", "z").version == 3
    assert one.put("counted", "z").version == 6


def test_a_dry_run_says_what_the_run_does(repo: Path, tmp_path: Path, later: datetime) -> None:
    """The dry run changes nothing, and its report is the one of the run; a second run has nothing to do."""
    furnish(mire.open(repo))
    picture = {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()}
    dry = retain(mire.open(repo).datastore, dry_run=True, now=later)
    assert dry.decisions
    assert {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()} == picture
    assert (*dry.decisions, *dry.findings) == tuple(
        sorted(plan_retain(mire.open(repo).datastore, now=later), key=lambda item: not isinstance(item, Decision))
    )
    before = versions_of(repo)
    real = retain(mire.open(repo).datastore, now=later)
    assert replace(real, is_dry_run=True) == dry
    gone = {(str(item.model), item.name, number) for item in dry.decisions for number in item.versions}
    assert versions_of(repo) == {key: data for key, data in before.items() if key not in gone}
    again = retain(mire.open(repo).datastore, now=later)
    assert (again.decisions, again.findings) == ((), dry.findings)


def test_more_names_than_one_lock_takes(store: mire.Store, later: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on batch after batch, until every name was looked at."""
    monkeypatch.setattr("mire.flow.retain._BATCH", 3)
    model = store.model("svc", "web-1")
    for number in range(8):
        model.put(f"n{number}", "x", lifetime="1d")
    report = retain(store.datastore, now=later)
    assert (report.names_removed, report.findings) == (8, ())
    assert (store.models(), store.locks()) == ([], [])


def test_nothing_to_remove_takes_no_lock(store: mire.Store, repo: Path) -> None:
    """Where nothing goes even a datastore that may not be written can be asked."""
    store.model("svc", "web-1").put("state", "x")
    barred = replace(store.datastore, read_only_reason="not today")
    assert retain(barred).decisions == ()
    store.model("svc", "web-1").put("state", "x", version_policy=1)
    assert len(retain(barred, dry_run=True).decisions) == 1
    with pytest.raises(DeniedError):
        retain(barred)


def test_damage_is_left_alone(store: mire.Store, repo: Path, later: datetime) -> None:
    """A name with damaged metadata, holds or marker keeps every file; the others are served."""
    model = store.model("svc", "web-1")
    data = repo / ".swamp/data/svc/web-1"
    for name in ("bad-old", "bad-latest", "bad-hold", "dangling", "fine"):
        for text in ("a", "b", "c"):
            model.put(name, text, lifetime="1d", version_policy=1)
    (data / "bad-old/1/metadata.yaml").write_text("id: [")
    (data / "bad-latest/3/metadata.yaml").write_text("name: x\n")
    (data / "bad-hold/.hold").write_text("{}")
    (data / "dangling/latest").write_text("9")
    outside = repo / "outside"
    shutil.copytree(data / "fine", outside)
    (data / "link").symlink_to(outside)
    (data / "a..b").mkdir()
    picture = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and "fine" not in path.parts}
    dry = retain(store.datastore, dry_run=True, now=later)
    report = retain(store.datastore, now=later)
    assert replace(report, is_dry_run=True) == dry
    assert told(report) == {"fine": ("duration-expired", (1, 2, 3), True, 3)}
    names = {item.name for item in report.findings}
    assert names == {"bad-old", "bad-latest", "bad-hold", "dangling", "link", "a..b"}
    now = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and "fine" not in path.parts}
    assert now == picture
    assert (outside / "3/raw").read_bytes() == b"c"


def test_a_rename_under_way_is_left_alone(store: mire.Store, repo: Path, later: datetime) -> None:
    """Where a dead writer left a rename, dry run and run both wait for whoever settles it."""
    model = store.model("svc", "web-1")
    model.put("state", "x", lifetime="1d")
    intent = {"old": "state", "new": "fresh", "newVersion": 1, "tombstoneVersion": 2}
    (repo / ".swamp/data/svc/web-1/_catalog.db-rename.json").write_text(json.dumps(intent))
    for dry_run in (True, False):
        report = retain(store.datastore, dry_run=dry_run, now=later)
        assert (report.decisions, [item.name for item in report.findings]) == ((), ["state"])
    assert model.versions("state") == [1]
    assert retain(store.datastore, now=later).names_removed == 1


def test_runs_that_nobody_can_see_keep_their_data(store: mire.Store, repo: Path) -> None:
    """Without a directory of runs, or with one that cannot be looked into, no run counts as deleted."""
    store.model("svc", "web-1").put("state", "x", lifetime="workflow", owner=owner())
    report = retain(store.datastore)
    assert (report.decisions, len(report.findings)) == ((), 1)
    runs = repo / ".swamp/workflow-runs"
    runs.mkdir()
    (runs / FLOW).symlink_to(FLOW)
    report = retain(store.datastore)
    assert (report.decisions, len(report.findings)) == ((), 1)
    (runs / FLOW).unlink()
    assert retain(store.datastore).names_removed == 1


class Worker:
    """Another process of another host that locks and writes on command."""

    def __init__(self, repo: Path) -> None:
        command = [sys.executable, str(HERE / "lock_worker.py"), str(repo), "elsewhere"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

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


@pytest.fixture
def worker(repo: Path) -> Iterator[Worker]:
    """A worker on the test's repository; ended with the test."""
    started = Worker(repo)
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.mark.parametrize(
    "command", [{"do": "hold-global", "ttl": 60_000}, {"do": "hold", "id": "web-2", "ttl": 60_000}]
)
def test_others_are_waited_for(repo: Path, worker: Worker, command: dict[str, Any], later: datetime) -> None:
    """A run removes nothing while others hold the datastore or any model of it; a dry run does not care."""
    store = mire.open(repo, lock_timeout=0.1)
    store.model("svc", "web-1").put("state", "x", lifetime="1d")
    assert worker.ask(**command)["ok"]
    with pytest.raises(LockTimeoutError):
        retain(store.datastore, now=later)
    assert len(retain(store.datastore, dry_run=True, now=later).decisions) == 1
    assert store.model("svc", "web-1").versions("state") == [1]
    assert worker.ask("release")["ok"]
    assert retain(store.datastore, now=later).names_removed == 1


def test_beside_a_writer(store: mire.Store, worker: Worker) -> None:
    """While another process puts versions none of them is lost, broken or numbered twice."""
    model = store.model("svc", "web-1")
    model.put("state", "first")
    worker.send("put", id="web-1", count=40)
    reports = [retain(store.datastore) for _ in range(5)]
    assert worker.answer() == {"ok": True, "versions": list(range(2, 42))}
    reports.append(retain(store.datastore))
    assert model.versions("state") == list(range(32, 42))
    assert [model.get("state", number).json()["n"] for number in model.versions("state")] == list(range(30, 40))
    removed = [number for report in reports for item in report.decisions for number in item.versions]
    assert removed == list(range(1, 32))
    assert [report.findings for report in reports] == [()] * 6


def test_dying_in_the_middle(tmp_path: Path) -> None:
    """Whatever the operation a run dies before, each version is there or gone, and the next run goes on."""
    command = [sys.executable, str(HERE / "retain_crash.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_the_store_retains_and_prunes(store: mire.Store, repo: Path) -> None:
    """From Python as from the command line: a dry run says what the real one then does."""
    model = store.model("svc", "web-1")
    for text in ("a", "b", "c"):
        model.put("state", text, version_policy=1)
    planned, done = store.retain(dry_run=True), store.retain()
    assert planned.decisions == done.decisions
    assert model.versions("state") == [3]
    (repo / "models").mkdir()
    assert store.prune().names_removed == 1
    assert model.versions("state") == []
