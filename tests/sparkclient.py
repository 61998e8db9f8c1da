"""A process with a session of Spark that runs what it is told, one thing after the other.

A line of JSON names either the `arguments` of a mire command or `code`, in which `spark` is the session. The answer is
a line, too: the exit code, and everything that was written to either stream meanwhile, whoever wrote it. The lines
come from standard input, or from a file whose name is an argument, followed by that of the file for the answers.
"""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Iterable
from typing import IO, Any

from mire.cli.main import main
from mire.pipeline.session import open_session


def call(request: dict[str, Any], names: dict[str, Any]) -> int:
    """Do one thing; its exit code."""
    os.environ.update(request["environ"])
    try:
        if "code" in request:
            exec(request["code"], names)  # noqa: S102 - a test's own lines
        else:
            main(request["arguments"])
    except SystemExit as ended:
        return int(ended.code or 0)
    except Exception:  # noqa: BLE001 - the test shows it
        traceback.print_exc()
        return 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def serve(requests: Iterable[str], answers: IO[str]) -> None:
    """Answer until there is nothing more to read."""
    with open_session() as spark:
        names: dict[str, Any] = {"spark": spark}
        print("[]", file=answers, flush=True)
        for line in requests:
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                code = call(json.loads(line), names)
                texts = []
                for file in (out, err):
                    file.seek(0)
                    texts.append(file.read().decode())
            print(json.dumps([code, *texts]), file=answers, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with open(sys.argv[1]) as given, open(sys.argv[2], "w") as told:
            serve(given, told)
    else:
        serve(sys.stdin, os.fdopen(os.dup(1), "w"))
