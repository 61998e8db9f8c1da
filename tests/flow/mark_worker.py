"""One of many processes that mark paths of one cache at once; run as a script.

Usage: mark_worker.py REPO CACHE NUMBER
"""

import sys
from dataclasses import replace

import mire
from mire.edge.objectstore import open_memory
from mire.flow.mark import marking

if __name__ == "__main__":
    repo, cache, number = sys.argv[1:]
    ds = replace(mire.open(repo, datastore=f"filesystem:{cache}").datastore, remote=open_memory())
    for count in range(10):
        with marking(ds, f"data/{number}/{count}"):
            pass
