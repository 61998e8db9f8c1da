"""A driver on a cluster, as a process of its own: runs commands that it is given, one after the other, in one session.

Started with a master, it reads a line of JSON (arguments, environment, stages, flags) from standard input, runs
the command, and writes a line of JSON (exit code, what it said).
"""

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from mire.cli.main import main
from mire.pipeline import frames
from mire.pipeline.frames import spark_schema
from mire.pipeline.session import open_session
from sparks import ACCESS, DAEMON, PRELOADED, QUICK, SMALL
from task_faults import faulty_tasks

CONF = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": SMALL,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.warehouse.dir": os.devnull,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "200ms",
    # For stages of a single task, of which no other one tells how long it should take.
    "spark.speculation.task.duration.threshold": "500ms",
    **DAEMON,
    **{f"spark.executorEnv.{name}": value for name, value in {**ACCESS, "PYTHONPATH": PRELOADED}.items()},
}


def ran(asked: dict[str, Any]) -> dict[str, Any]:
    """Run one command, its tasks disturbed as asked."""
    os.environ.update(asked["environ"])
    stage, slow = (spark_schema(getattr(frames, asked[name])) for name in ("stage", "slow"))
    faults = faulty_tasks("disturb", stage, Path(asked["flags"]), slow_stage=slow)
    out, err, code = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO()), 0
    with redirect_stdout(out), redirect_stderr(err), faults:
        try:
            main(asked["arguments"])
        except SystemExit as ended:
            code = int(ended.code or 0)
    said = []
    for each in (out, err):
        each.flush()
        each.seek(0)
        said.append(each.read())
    return {"code": code, "out": said[0], "err": said[1]}


if __name__ == "__main__":
    with open_session(sys.argv[1], conf=CONF):
        for line in sys.stdin:
            sys.stdout.write(json.dumps(ran(json.loads(line))) + "\n")
            sys.stdout.flush()
