"""Several processes that write and query one store at once; run as a script. Prints what they got wrong.

Usage: catalog_race.py REPO PROCESSES ROUNDS
"""

import os
import sys
import traceback

import mire
from mire.flow.catalog import catalog_path, discard


def main(repo: str, processes: int, rounds: int) -> None:
    """Each process puts into its own model and asks for what it put; one also throws the catalog away."""
    children = []
    for index in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store = mire.open(repo, lock_timeout=60)
                for number in range(rounds):
                    store.model("svc", f"m{index}").put("state", {"n": number}, tags={"round": str(number)})
                    found = store.query(f"modelId == 'm{index}' && tags.round == '{number}'")
                    assert [row["version"] for row in found] == [number + 1], (index, number, found.rows)
                    if index == 0 and number % 5 == 4:
                        discard(catalog_path(store.datastore))
                code = 0
            except AssertionError:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    print(failed, len(mire.open(repo).query("true", history=True)))  # noqa: T201 - the result


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
