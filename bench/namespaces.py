"""Repositories that push to one S3 server in another process: one alone, and many at once, each in its namespace.

Usage: python bench/namespaces.py [NAMESPACES] [PUTS]. Each put takes the lock of its model, pulls, writes a version and
pushes. Shown are milliseconds of one put, and requests of one put: whoever waits for a lock or loses a race of index
writes asks more often. Works in temporary directories below MIRE_BENCH_DIR and removes them.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

os.environ.setdefault("AWS_ACCESS_KEY_ID", "bench")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "bench")
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

import mire
from mire.flow.namespace import set_namespace
from mire.flow.setup import init


@contextmanager
def served() -> Iterator[str]:
    """A server in a process of its own."""
    command = [sys.executable, "-m", "mire.testing.s3server", "--port", "0", "--bucket", "bench"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip() if server.stdout else ""
        finally:
            server.kill()


def repository(top: str, name: str, url: str, *, is_shared: bool) -> mire.Store:
    """A repository in a namespace of the bucket, or without one in the part that all share."""
    path = f"{top}/{name}"
    target = json.dumps({"bucket": "bench", "prefix": "solo" if is_shared else "many", "endpoint": url,
                         "region": "us-east-1", "forcePathStyle": True})  # fmt: skip
    init(path, datastore=f"@swamp/s3-datastore:{target}")
    if not is_shared:
        set_namespace(path, name)
    return mire.open(path)


def counts(url: str) -> dict[str, int]:
    """Requests by operation."""
    found = json.loads(urllib.request.urlopen(f"{url}/-/counts").read())  # noqa: S310 - our own server
    return {name: tally["requests"] for name, tally in found.items()}


def measure(what: str, stores: list[mire.Store], puts: int, url: str) -> None:
    """All at once, each so many puts; one line."""
    times: list[float] = []
    barrier = threading.Barrier(len(stores))
    urllib.request.urlopen(urllib.request.Request(f"{url}/-/reset", method="POST")).read()  # noqa: S310 - our own server

    def work(store: mire.Store) -> None:
        barrier.wait()
        for number in range(puts):
            start = time.perf_counter()
            store.model("bench/model", "m").put("state", f"{number}")
            times.append((time.perf_counter() - start) * 1000)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - start
    requests = sum(counts(url).values()) / len(times)
    print(
        f"{what:<36}{statistics.median(times):8.1f} ms a put  {len(times) / elapsed:7.1f} puts/s"
        f"  {requests:5.1f} requests a put",
        flush=True,
    )


def main(namespaces: int, puts: int) -> None:
    """One alone, then many."""
    with served() as url, tempfile.TemporaryDirectory(dir=os.environ.get("MIRE_BENCH_DIR")) as top:
        os.environ["SWAMP_HOME"] = f"{top}/home"
        alone = [repository(top, "alone", url, is_shared=False)]
        measure("1 namespace", alone, puts, url)
        many = [repository(top, f"team-{number:02}", url, is_shared=False) for number in range(namespaces)]
        measure(f"{namespaces} namespaces at once", many, puts, url)
        together = [repository(top, f"solo-{number:02}", url, is_shared=True) for number in range(4)]
        measure("4 repositories without a namespace", together, puts, url)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 5)  # noqa: PLR2004
