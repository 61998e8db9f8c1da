"""Every known way in which the reference loses, resurrects or invents data has a test of ours, or a reason here.

Tests are named after the items of wire-format §10 (A, B, C, E, G) and newest §2.9 (P), §3.1 (a to n) and §3.2 (X):

- `test_holes_loss.py`: A1 to A13, G1 to G3
- `test_holes_reads.py`: B1 to B11
- `test_holes_index.py`: C1 to C8
- `test_holes_namespaces.py`: E1 to E10
- `test_holes_newest.py`: a to l
- `test_holes_source.py`: X1 to X15
- `test_holes_peers.py`: P1 to P9
"""

import re
from pathlib import Path

ITEMS = (
    *(f"A{number}" for number in range(1, 14)),
    *(f"B{number}" for number in range(1, 12)),
    *(f"C{number}" for number in range(1, 9)),
    *(f"E{number}" for number in range(1, 11)),
    *(f"G{number}" for number in range(1, 4)),
    *"abcdefghijklmn",
    *(f"X{number}" for number in range(1, 17)),
    *(f"P{number}" for number in range(1, 11)),
)

ELSEWHERE = {
    "k": "content that a query needs is brought by the query: tests of queries over a cache",
    "m": "polling belongs to whoever serves; one look costs one conditional request: test_sync_cost",
    "n": "`--max-age` belongs to the life of a command: tests of flow/sync",
    "X10": "stealing and losing locks: test_lock_objects",
    "X12": "no migration of ours reads a monolith once shards are the index: tests of the migration; C2 and C4 here",
    "X16": "both global keys are taken: test_lock_objects",
    "P6": "definitions are files like others; managed configuration belongs to the reference's core",
    "P10": "a pull always says how many files it changed (X15), so nobody has to guess",
}


def found_tests() -> set[str]:
    """The items that some test beside this file is named after."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_holes_*.py"):
        found |= set(re.findall(r"^def test_([A-Z]\d+|[a-z])_", path.read_text(), re.MULTILINE))
    return found


def test_every_item_is_tested_or_explained() -> None:
    """No item is forgotten, and none is explained away that is tested."""
    assert set(ITEMS) == (found_tests() & set(ITEMS)) | set(ELSEWHERE)
    assert not found_tests() & set(ELSEWHERE)
