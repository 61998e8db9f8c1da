"""Puts per second against plain file writes of the same bytes on the same disk, in one run.

Usage: python bench/puts.py [COUNT [BYTES]]. A put writes three files (raw, metadata, latest), each synced with
its directory, under a lock; so the fair floor is three durable plain writes, and the other lines show what
durability and the rest cost.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable

import mire
from mire.edge import files


def rate(count: int, call: Callable[[int], object]) -> float:
    """Calls per second."""
    start = time.perf_counter()
    for number in range(count):
        call(number)
    return count / (time.perf_counter() - start)


def main(count: int, size: int) -> None:
    """Measure and print."""
    directory = tempfile.mkdtemp(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR"))
    content = os.urandom(size)
    try:
        store = mire.open(directory)
        plain = os.path.join(directory, "plain")
        os.mkdir(plain)

        def plain_write(number: int) -> None:
            with open(os.path.join(plain, f"a{number}"), "wb") as file:
                file.write(content)

        def three_durable(number: int) -> None:
            folder = os.path.join(plain, f"d{number}")
            files.claim_dir(folder)
            for name in ("raw", "metadata.yaml"):
                files.write_file(os.path.join(folder, name), [content])
            files.write_file(os.path.join(plain, "latest"), [b"1"])

        one = store.model("bench", "one-name")
        many = store.model("bench", "many-names")
        plain_write(-1)
        three_durable(-1)
        one.put("state", content)
        rates = {
            "plain write, not synced": rate(count, plain_write),
            "3 durable writes + mkdir": rate(count, three_durable),
            "put, one name": rate(count, lambda _: one.put("state", content)),
            "put, new names": rate(count, lambda number: many.put(f"n{number}", content)),
            "get, verified": rate(count, lambda _: one.get("state").bytes()),
            "plain read": rate(count, lambda number: files.read_file(os.path.join(plain, f"a{number}"))),
        }
        with one.hold():
            rates["put, lock already held"] = rate(count, lambda _: one.put("state", content))
        durable = rates["3 durable writes + mkdir"]
        print(f"{count} x {size} bytes on {directory.split(os.sep)[1]}")
        for name, found in rates.items():
            print(f"{name:<26} {found:9.0f}/s   {found / durable:6.2f} x three durable writes")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]]
    main(*(arguments + [500, 1024][len(arguments) :]))
