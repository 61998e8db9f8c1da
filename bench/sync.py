"""Push and pull beside an S3 server in another process: the scenarios of the reference's own benchmark, and scale.

Usage: python bench/sync.py [--latency MS] [--scale FILES]. Without --scale: 1,000 files of 5 KB in 50 models. With it:
one changed file, nothing to do, one model and a full walk in a store of so many files (25 in a model).
Works in temporary directories below MIRE_BENCH_DIR and removes them.
"""

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

os.environ.setdefault("AWS_ACCESS_KEY_ID", "bench")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "bench")
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

import mire
from mire.edge.lockdir import LockDir
from mire.edge.objectstore import open_s3
from mire.edge.remote import Remote
from mire.edge.retrying import Retrying
from mire.flow.datastore import Datastore
from mire.flow.mark import mark, mark_all
from mire.flow.pull import pull
from mire.flow.push import commit_push, prepare_push, push
from mire.model.artifact import ModelRef
from mire.model.backend import S3Settings
from mire.model.config import SyncSettings
from mire.model.names import ModelId, ModelType

KIND = "bench/model"
CONTENT = os.urandom(5_000)
PER_MODEL = 25
ONE = ModelRef(model_type=ModelType(KIND), model_id=ModelId("m000003"))


@contextmanager
def served(latency_ms: float) -> Iterator[tuple[str, int]]:
    """A fault server in a process of its own."""
    command = [sys.executable, "-m", "mire.testing.s3server", "--port", "0", "--bucket", "bench"]
    with subprocess.Popen([*command, "--delay-ms", str(latency_ms)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip() if server.stdout else "", server.pid
        finally:
            server.kill()


class Bench:
    """Fresh prefixes on one server, and caches in one directory."""

    def __init__(self, url: str, pid: int, directory: str) -> None:
        self.url = url
        self.pid = pid
        self.directory = directory
        self.count = 0

    def remote(self, prefix: str) -> Remote:
        """The part of the server under a prefix."""
        settings = S3Settings(
            bucket="bench", prefix=prefix, endpoint=self.url, region="us-east-1", force_path_style=True
        )
        return Retrying(open_s3(settings))

    def client(self, prefix: str, *, sharded: bool, name: str | None = None) -> Datastore:
        """A new empty cache of a prefix, or the one of a name."""
        self.count += 1
        path = f"{self.directory}/{name or f'cache-{self.count}'}"
        base = f"{path}/cache"
        os.makedirs(base, exist_ok=True)
        ds = mire.open(path).datastore
        return dataclasses.replace(
            ds, base=base, locks=LockDir(base), remote=self.remote(prefix), sync=SyncSettings(is_sharded=sharded)
        )

    def server_seconds(self) -> float:
        """Processor time the server has used."""
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def reset(self) -> None:
        """Forget what was counted."""
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/-/reset", method="POST")).read()  # noqa: S310

    def requests(self) -> str:
        """What was asked since."""
        import json  # noqa: PLC0415 - only here

        found = json.loads(urllib.request.urlopen(f"{self.url}/-/counts").read())  # noqa: S310
        return " ".join(f"{name} {tally['requests']}" for name, tally in sorted(found.items()) if name != "Unknown")


def rel(number: int, models: int) -> str:
    """The path of a file: as many per model as come out."""
    return f"data/{KIND}/m{number % models:06d}/state/{number // models + 1}/content.json"


def fill(ds: Datastore, files: int, models: int) -> None:
    """Write the files of a store."""
    for number in range(files):
        path = f"{ds.tier}/{rel(number, models)}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(CONTENT + str(number).encode())


def change(ds: Datastore, number: int, models: int) -> None:
    """Mark a file and change it."""
    path = rel(number, models)
    mark(ds, path)
    with open(f"{ds.tier}/{path}", "wb") as file:
        file.write(CONTENT + str(time.time_ns()).encode())


def timed(bench: Bench, what: str, call: Callable[[], object], before: Callable[[], object] | None = None) -> None:
    """One line: milliseconds, the processor time of both sides (of which ours is what we can better), the requests."""
    times, requests = [], ""
    ours, theirs = 0.0, 0.0
    for _ in range(1 if before is None else 5):
        if before is not None:
            before()
        bench.reset()
        before_us, before_them = time.process_time(), bench.server_seconds()
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1000)
        ours, theirs = time.process_time() - before_us, bench.server_seconds() - before_them
        requests = bench.requests()
    times.sort()
    cpu = f"cpu {ours * 1000:7.1f} + {theirs * 1000:5.0f}"
    print(f"{what:<34}{times[len(times) // 2]:9.1f} ms   {cpu}   {requests}", flush=True)


def scenarios(bench: Bench, files: int = 1000, models: int = 50) -> None:
    """The fifteen."""
    for sharded in (False, True):
        form = "v2" if sharded else "v1"
        writer = bench.client(form, sharded=sharded)
        fill(writer, files, models)
        mark_all(writer)
        timed(bench, f"{form} cold push of {files}", lambda ds=writer: push(ds))
        timed(bench, f"{form} push of one changed", lambda ds=writer: push(ds), lambda ds=writer: change(ds, 7, models))
        timed(bench, f"{form} push, nothing to do", lambda ds=writer: push(ds), lambda: None)
        timed(
            bench,
            f"{form} push of 250 changed",
            lambda ds=writer: push(ds),
            lambda ds=writer: [change(ds, n, models) for n in range(250)],
        )
        timed(
            bench,
            f"{form} two-phase, one changed",
            lambda ds=writer: commit_push(ds, *prepare_push(ds)),
            lambda ds=writer: change(ds, 8, models),
        )
        timed(
            bench,
            f"{form} two-phase, nothing to do",
            lambda ds=writer: commit_push(ds, *prepare_push(ds)),
            lambda: None,
        )
        reader = bench.client(form, sharded=sharded)
        timed(bench, f"{form} cold pull of {files}", lambda ds=reader: pull(ds, full=True))
        timed(bench, f"{form} pull, nothing to do", lambda ds=reader: pull(ds, full=True), lambda: None)

        def elsewhere(ds: Datastore = writer) -> None:
            change(ds, 9, models)
            push(ds)

        timed(bench, f"{form} pull of one changed", lambda ds=reader: pull(ds, full=True), elsewhere)
        fresh = bench.client(form, sharded=sharded)
        timed(bench, f"{form} cold pull of one model", lambda ds=fresh: pull(ds, models=[ONE], full=True))


def scale(bench: Bench, files: int) -> None:
    """A large store: nothing may grow with it that need not."""
    for sharded in (False, True):
        form = "v2" if sharded else "v1"
        writer = bench.client(form, sharded=sharded, name=form)
        fill(writer, files, files // PER_MODEL)
        mark_all(writer)
        timed(bench, f"{form}, {files}: cold push", lambda ds=writer: push(ds))
        print_peak(f"{form}, {files}, cold push")
        # What everyday work needs is measured in a process that does nothing else.
        again = [str(bench.pid), bench.url, bench.directory, form]
        subprocess.run([sys.executable, __file__, "--scale", str(files), "--again", *again], check=True)


def everyday(bench: Bench, files: int, form: str) -> None:
    """Small work on a large store that is there."""
    models = files // PER_MODEL
    sharded = form == "v2"
    writer = bench.client(form, sharded=sharded, name=form)
    what = f"{form}, {files}"
    timed(bench, f"{what}: push of one changed", lambda: push(writer), lambda: change(writer, 7, models))
    timed(bench, f"{what}: push, nothing to do", lambda: push(writer), lambda: None)
    timed(bench, f"{what}: pull, nothing to do", lambda: pull(writer), lambda: None)
    fresh = bench.client(form, sharded=sharded, name=f"{form}-fresh")
    timed(bench, f"{what}: cold pull of one model", lambda: pull(fresh, models=[ONE], full=True))
    print_peak(f"{what}, so far")
    timed(bench, f"{what}: full walk", lambda: push(writer, full=True))
    print_peak(f"{what}, with the full walk")


def print_peak(what: str) -> None:
    """The most memory this process has had; `getrusage` would also count whoever started it."""
    with open("/proc/self/status") as status:
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    print(f"{what}: peak memory {peak_kb // 1024} MB", flush=True)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--scale", type=int, default=0)
    parser.add_argument("--again", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.again:
        pid, url, directory, form = given.again
        everyday(Bench(url, int(pid), directory), given.scale, form)
        return
    directory = tempfile.mkdtemp(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR"))
    try:
        with served(given.latency) as (url, pid):
            bench = Bench(url, pid, directory)
            scale(bench, given.scale) if given.scale else scenarios(bench)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
