"""A monolith of many entries: reading it and setting one entry, beside plain JSON, each in a process of its own.

Usage: python bench/index.py [ENTRIES]. Prints processor time and the peak of memory, the text itself included; the
first line is what reading the file alone takes. The monolith is in a temporary directory below MIRE_BENCH_DIR.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable

from mire.model.index import Entry
from mire.model.instant import Instant
from mire.model.names import RelPath
from mire.wire.monolith import decode_monolith, encode_monolith
from mire.wire.partition import partition_of
from mire.wire.shard import shard_of

NOW = Instant("2026-03-04T05:06:07.089Z")
ENTRY = Entry(size_bytes=7, last_modified=NOW, local_mtime=NOW, sha256="0" * 64)


def rel_of(number: int) -> RelPath:
    """The paths of models with ten versions, two files each."""
    model, version = number // 20, number // 2 % 10
    directory = f"data/aws/ec2/some-type-{model % 50}/{uuid.uuid5(uuid.NAMESPACE_URL, str(model))}/state-of-instance"
    return RelPath(f"{directory}/{version + 1}/{('raw', 'metadata.yaml')[number % 2]}")


def generate(count: int) -> bytes:
    """A monolith as clients write it."""
    digests = (hashlib.sha256(str(number).encode()).hexdigest() for number in range(count))
    return encode_monolith(
        {
            rel_of(number): Entry(size_bytes=number, last_modified=NOW, local_mtime=NOW, sha256=digest)
            for number, digest in enumerate(digests)
        },
        NOW,
    )


def changes(count: int) -> dict[RelPath, Entry]:
    """One entry in the middle, and a new one."""
    return {rel_of(count // 2): ENTRY, RelPath("data/aws/ec2/new/id/state/1/raw"): ENTRY}


def read(_data: bytes, _count: int) -> object:
    """Nothing but the file."""
    return None


def plain(data: bytes, count: int) -> object:
    """Parse, set, write."""
    document = json.loads(data)
    document["entries"] |= {rel: {"key": rel, "size": entry.size_bytes} for rel, entry in changes(count).items()}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def one_push(data: bytes, count: int) -> object:
    """What a push of two files does: look up, set, and the shard that follows."""
    index = decode_monolith(data)
    for rel in changes(count):
        index.get(rel)
    shard = shard_of(index, index.of_partition(partition_of(rel_of(count // 2)) or ""))
    return shard, index.with_changes(changes(count), last_pulled=NOW)


def mapped(data: bytes, count: int) -> object:
    """The same by the map, as for many changes."""
    index = decode_monolith(data)
    return len(index), index.with_changes(changes(count), last_pulled=NOW)


def difference(data: bytes, count: int) -> object:
    """What another client's push changed."""
    index = decode_monolith(data)
    return index.diff(decode_monolith(index.with_changes(changes(count), last_pulled=NOW)))


def decode_all(data: bytes, _count: int) -> object:
    """Every entry as a noun, one after the other."""
    return sum(isinstance(entry, Entry) for _, entry in decode_monolith(data).entries())


def unusual(data: bytes, _count: int) -> object:
    """A text no client writes: read by walking it, and rewritten."""
    return decode_monolith(b'{"xNested":{},' + data[1:])


STEPS: dict[str, Callable[[bytes, int], object]] = {
    step.__name__: step for step in (read, plain, one_push, mapped, difference, decode_all, unusual)
}


def measure(path: str, name: str, count: int) -> None:
    """One step, in this process."""
    with open(path, "rb") as file:
        data = file.read()
    start = time.process_time()
    STEPS[name](data, count)
    used = time.process_time() - start
    # What getrusage says includes the parent's memory before the start.
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    print(f"{name:<12} {used * 1000:8.0f} ms   peak {peak:6.0f} MB", flush=True)


def main(count: int) -> None:
    """Generate, and run each step in a new process."""
    with tempfile.TemporaryDirectory(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR")) as directory:
        path = os.path.join(directory, "monolith.json")
        data = generate(count)
        with open(path, "wb") as file:
            file.write(data)
        print(f"{count} entries, {len(data) / 1e6:.0f} MB", flush=True)
        del data
        for name in STEPS:
            subprocess.run([sys.executable, __file__, path, name, str(count)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:  # noqa: PLR2004 - started by itself
        measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 250_000)
