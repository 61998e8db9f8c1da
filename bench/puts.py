"""Puts per second against plain file writes of the same bytes on the same disk, in one run.

Usage: python bench/puts.py [COUNT [BYTES]]. A put writes three files (raw, metadata, latest), each synced with
its directory, under a lock; so the fair floor is three durable plain writes, and the other lines show what
durability and the rest cost.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import mire
from mire.edge import files

ROUNDS = 10


def main(count: int, size: int) -> None:
    """Measure in rounds, so that a disk that is busy for a moment disturbs all lines alike, and print medians."""
    directory = tempfile.mkdtemp(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR"))
    content = os.urandom(size)
    try:
        lines = calls(directory, content)
        rates: dict[str, list[float]] = {name: [] for name in lines}
        number = 0
        for _ in range(ROUNDS):
            for name, call in lines.items():
                start = time.perf_counter()
                for step in range(count // ROUNDS):
                    call(number + step)
                rates[name].append(count // ROUNDS / (time.perf_counter() - start))
            number += count // ROUNDS
        durable = rates["3 durable writes + mkdir"]
        print(f"{count} x {size} bytes in {directory}, medians of {ROUNDS} rounds")
        for name, found in rates.items():
            ratio = statistics.median(mine / base for mine, base in zip(found, durable, strict=True))
            print(f"{name:<26} {statistics.median(found):9.0f}/s   {ratio:6.2f} x three durable writes")
    finally:
        shutil.rmtree(directory)


def calls(directory: str, content: bytes) -> dict[str, Callable[[int], object]]:
    """What is measured, by name; each is called with a number it has not seen before."""
    store = mire.open(directory)
    plain = os.path.join(directory, "plain")
    os.mkdir(plain)
    one, many = store.model("bench", "one-name"), store.model("bench", "many-names")
    one.put("state", content)

    def plain_write(number: int) -> None:
        with open(os.path.join(plain, f"a{number}"), "wb") as file:
            file.write(content)

    def three_durable(number: int) -> None:
        folder = os.path.join(plain, f"d{number}")
        files.claim_dir(folder)
        for name in ("raw", "metadata.yaml"):
            files.write_file(os.path.join(folder, name), [content])
        files.write_file(os.path.join(plain, "latest"), [b"1"])

    return {
        "plain write, not synced": plain_write,
        "3 durable writes + mkdir": three_durable,
        "put, one name": lambda _: one.put("state", content),
        "put, new names": lambda number: many.put(f"n{number}", content),
        "get, verified": lambda _: one.get("state").bytes(),
        "plain read": lambda number: files.read_file(os.path.join(plain, f"a{number}")),
    }


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]]
    main(*(arguments + [500, 1024][len(arguments) :]))
