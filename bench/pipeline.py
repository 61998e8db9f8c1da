"""Whole-store jobs beside s5cmd and rclone on the same server in one run, and how their cost grows.

Usage: python bench/pipeline.py bulk [--files 100000] [--size 2048] [--programs s5cmd,here,…]
           bulk push and migrate against s5cmd and rclone; first `mire spark prepare`
           how their cost grows: --files 10000,100000,1000000 --programs here
       python bench/pipeline.py verify [--entries 10000,100000,1000000] verify of an index, its listing made up
       python bench/pipeline.py threshold [--files 5000,20000,50000]   from how many files on Spark is worth its start
Works in temporary directories below MIRE_BENCH_DIR and removes them. Programs run one after the other.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
BUCKET = "bench"
REPO_ID = "00000000-0000-4000-8000-000000000001"
PER_MODEL = 100


@contextmanager
def directory() -> Iterator[Path]:
    """A temporary directory."""
    path = tempfile.mkdtemp(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR"))
    try:
        yield Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def seaweedfs(root: Path) -> Iterator[Any]:
    """SeaweedFS with a bucket."""
    sys.path.insert(0, str(TESTS))
    import servers  # noqa: PLC0415 - shared with the tests

    root.mkdir(exist_ok=True)
    with servers.open_seaweedfs(root / "seaweedfs") as server:
        client = server.client()
        client.create_bucket(Bucket=BUCKET)
        client.close()
        os.environ |= {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key}
        os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1"}
        yield server


def filled(root: Path, files: int, size: int) -> Path:
    """A directory of small files in the layout of a datastore, content and metadata in turn."""
    content = os.urandom(size)
    for number in range(files):
        model, version = divmod(number, PER_MODEL)
        path = root / f"data/bench/model/m{model:06d}/state/{version // 2 + 1}/{('raw', 'metadata.yaml')[version % 2]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "big") + content[8:])
    return root


def repository(root: Path, url: str, prefix: str) -> tuple[Path, dict[str, str]]:
    """A repository whose remote is a prefix of the server, and the environment its commands run in."""
    repo = root / f"repo-{prefix}"
    repo.mkdir()
    (repo / ".swamp.yaml").write_text(
        f'swampVersion: "1"\nrepoId: "{REPO_ID}"\ndatastore:\n  type: "@swamp/s3-datastore"\n  config:\n'
        f'    bucket: {BUCKET}\n    prefix: {prefix}\n    endpoint: "{url}"\n    region: us-east-1\n'
        "    forcePathStyle: true\n    index: sharded\n"
    )
    home = root / f"home-{prefix}"
    return repo, {**os.environ, "HOME": str(home)}


class Load:
    """What a command and all it starts take, by program; those that end between two looks count as seen."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._seconds: dict[int, tuple[str, float]] = {}
        self.peak_mb: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> dict[str, float]:
        """Seconds by program."""
        self._stop.set()
        self._thread.join()
        sums: dict[str, float] = {}
        for name, seconds in self._seconds.values():
            sums[name] = sums.get(name, 0.0) + seconds
        return sums

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            for directory in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    head, _, tail = (directory / "stat").read_text().rpartition(")")
                    fields = tail.split()
                    if int(fields[3]) == self._session:
                        ticks = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                        name = head.partition("(")[2]
                        self._seconds[int(directory.name)] = (name, ticks)
                        self.peak_mb[name] = max(peak_mb(int(directory.name)), self.peak_mb.get(name, 0.0))


def timed(what: str, count: int, command: list[str], env: dict[str, str] | None = None) -> float:
    """Run a command, show its rate and whose processor time it took, give its seconds."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)
        load = Load(process.pid)
        code = process.wait()
        seconds = time.monotonic() - began
        cpu = load.end()
        if code:
            said.seek(0)
            raise SystemExit(f"{what}: exit {code}: {said.read().strip()[-300:]}")
    shares = ", ".join(
        f"{name} {each:.0f} ({load.peak_mb[name]:.0f} MB)"
        for name, each in sorted(cpu.items(), key=lambda item: -item[1])
        if each >= 1
    )
    print(f"{what:32} {seconds:7.1f} s {count / seconds:8.0f} files/s   processor s (memory): {shares}", flush=True)
    return seconds


def tools(url: str) -> tuple[list[str], list[str]]:
    """How s5cmd and rclone are called for the server."""
    programs = Path(sys.executable).parent
    s5cmd = [str(programs / "s5cmd"), "--endpoint-url", url, "--log", "error"]
    options = {
        "--s3-provider": "Other",
        "--s3-endpoint": url,
        "--s3-env-auth": "true",
        "--s3-force-path-style": "true",
        "--transfers": "32",
        "--checkers": "32",
    }
    rclone = [str(programs / "rclone"), *(f"{name}={value}" for name, value in options.items()), "--s3-no-check-bucket"]
    return s5cmd, rclone


def bulk(files: int, size: int, programs: str) -> None:
    """Push and migrate the same files, by each program, each with a new server: none works on what another left."""
    with directory() as root:
        source = filled(root / "source", files, size)
        print(f"{files} files of {size} B, SeaweedFS, {os.cpu_count()} cores; 'copied' is from store to store")
        runs = {"s5cmd": _by_s5cmd, "here": _by_mire, "spark": _by_mire, "rclone": _by_rclone}
        for name in programs.split(","):
            with seaweedfs(root / name) as server:
                runs[name](name, files, source, root / name, server.url)
                check_copied(server, files)
            shutil.rmtree(root / name)


def check_copied(server: Any, files: int) -> None:
    """That a program did what it was timed for."""
    client = server.client()
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="two/data/")
    found = sum(page["KeyCount"] for page in pages)
    client.close()
    if found != files:
        raise SystemExit(f"{found} objects were copied, not {files}")


def _by_s5cmd(name: str, files: int, source: Path, _root: Path, url: str) -> None:
    s5cmd, _ = tools(url)
    timed(f"{name} cp", files, [*s5cmd, "cp", f"{source}/", f"s3://{BUCKET}/one/"])
    timed(f"{name} cp, copied", files, [*s5cmd, "cp", f"s3://{BUCKET}/one/*", f"s3://{BUCKET}/two/"])


def _by_rclone(name: str, files: int, source: Path, _root: Path, url: str) -> None:
    _, rclone = tools(url)
    timed(f"{name} copy", files, [*rclone, "copy", str(source), f":s3:{BUCKET}/one"])
    timed(f"{name} copy, copied", files, [*rclone, "copy", f":s3:{BUCKET}/one", f":s3:{BUCKET}/two"])


def _by_mire(name: str, files: int, source: Path, root: Path, url: str) -> None:
    mire = str(Path(sys.executable).parent / "mire")
    repo, env = repository(root, url, "one")
    cache = Path(env["HOME"]) / ".swamp/repos" / REPO_ID
    cache.parent.mkdir(parents=True)
    shutil.copytree(source, cache)
    flag = "--pipeline" if name == "spark" else "--no-pipeline"
    timed(f"mire push --all {flag}", files, [mire, "push", "--all", flag, "--repo", str(repo), "--json"], env)
    where = f"?endpoint={url}&region=us-east-1&forcePathStyle=true"
    ends = [f"s3://{BUCKET}/one{where}", f"s3://{BUCKET}/two{where}"]
    timed(f"mire migrate {flag}, copied", files, [mire, "migrate", *ends, flag, "--index", "sharded", "--json"], env)


def threshold(sizes: list[int]) -> None:
    """Push with and without Spark."""
    mire = str(Path(sys.executable).parent / "mire")
    with directory() as root, seaweedfs(root) as server:
        for files in sizes:
            source = filled(root / f"source-{files}", files, 2048)
            print(f"\n{files} files")
            for name, flag in (("spark", "--pipeline"), ("here", "--no-pipeline")):
                repo, env = repository(root, server.url, f"{name}-{files}")
                cache = Path(env["HOME"]) / ".swamp/repos" / REPO_ID
                cache.parent.mkdir(parents=True)
                shutil.copytree(source, cache)
                timed(f"push {flag}", files, [mire, "push", "--all", flag, "--repo", str(repo), "--json"], env)


def synthetic_index(remote: Path, entries: int) -> None:
    """A sharded index of so many entries, a hundred to a model."""
    index = remote / "_index"
    index.mkdir(parents=True)
    names = []
    for model in range(-(-entries // PER_MODEL)):
        rels = [rel_of(model * PER_MODEL + each) for each in range(min(PER_MODEL, entries - model * PER_MODEL))]
        texts = {
            rel: {"key": rel, "size": 2048, "lastModified": "2026-11-01T00:00:00.000Z", "sha256": f"{model:064x}"}
            for rel in rels
        }
        names.append(f"data--bench--model--m{model:06d}")
        text = json.dumps({"version": 1, "entries": texts}, separators=(",", ":"))
        (index / f"{names[-1]}.json").write_text(text)
    (index / "_meta.json").write_text(json.dumps({"version": 2, "partitions": names, "commitSeq": 1}))


def rel_of(number: int) -> str:
    """The path of a made-up entry."""
    return f"data/bench/model/m{number // PER_MODEL:06d}/state/{number % PER_MODEL + 1}/raw"


def verify(sizes: list[int]) -> None:
    """Verify indexes that grow; one object in a thousand is missing, one has another size."""
    import mire  # noqa: PLC0415 - other benchmarks start it as a program
    from mire.pipeline.jobs.verify import verify_store  # noqa: PLC0415
    from mire.pipeline.session import open_session  # noqa: PLC0415

    print(f"{'entries':>10} {'seconds':>8} {'entries/s':>10} {'findings':>9} {'driver MB':>10} {'Java MB':>8}")
    with directory() as root, open_session() as spark:
        java = spark.sparkContext._gateway.proc.pid  # noqa: SLF001 - how else to tell
        os.environ["HOME"] = str(root)
        # What a new session does once is not the cost of a verification: the first one is not shown.
        for number, entries in enumerate([1_000, *sizes]):
            remote = root / f"remote-{entries}"
            synthetic_index(remote, entries)
            repo = root / f"repo-{entries}"
            repo.mkdir()
            (repo / ".swamp.yaml").write_text(
                f'swampVersion: "1"\nrepoId: "00000000-0000-4000-8000-{entries:012d}"\ndatastore:\n'
                f'  type: "@mire/file-datastore"\n  config:\n    path: "{remote}"\n    index: sharded\n'
            )
            numbered = spark.range(entries, numPartitions=max(2, entries // 100_000)).where("id % 1000 <> 3")
            objects = numbered.selectExpr(
                f"concat('data/bench/model/m', lpad(cast(id div {PER_MODEL} as string), 6, '0'), '/state/',"
                f" id % {PER_MODEL} + 1, '/raw') rel",
                "case when id % 1000 = 7 then 1L else 2048L end size_bytes",
                "'' fingerprint",
                "0L modified_ms",
            )
            with mire.open(repo) as store:
                began = time.monotonic()
                done = verify_store(spark, store.datastore, objects=objects)
                seconds = time.monotonic() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            if number == 0:
                continue
            print(
                f"{done.entries:10} {seconds:8.1f} {done.entries / seconds:10.0f} {sum(done.kinds.values()):9}"
                f" {peak:10.0f} {peak_mb(java):8.0f}",
                flush=True,
            )


def peak_mb(pid: int) -> float:
    """The most memory a process and its children had; the shell that starts Java becomes it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def numbers(text: str) -> list[int]:
    """Numbers from `1,2,3`."""
    return [int(each) for each in text.split(",")]


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("bulk")
    part.add_argument("--files", type=numbers, default="100000")
    part.add_argument("--size", type=int, default=2048)
    # A machine is not as fast at all times: who is compared closest has a second turn, in the other order.
    part.add_argument("--programs", default="s5cmd,here,spark,rclone,here,s5cmd")
    parts.add_parser("verify").add_argument("--entries", type=numbers, default="10000,100000,1000000")
    parts.add_parser("threshold").add_argument("--files", type=numbers, default="5000,20000,50000")
    given = parser.parse_args()
    if given.part == "bulk":
        for files in given.files:
            bulk(files, given.size, given.programs)
    elif given.part == "verify":
        verify(given.entries)
    else:
        threshold(given.files)


if __name__ == "__main__":
    main()
