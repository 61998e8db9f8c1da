"""Workers have Pythons of their own: with the wheel they do the work, with anything else they are told apart."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from mire.testing.s3server import S3Server
from sparkconnect import HANG_S
from sparks import ACCESS, QUICK, SMALL, Cluster
from sparkwheels import OTHER, environment, newer_python, other_obstore, other_python

BUCKET = "mire-workers"
USAGE = 2
HOME = Path(pyspark.__file__).parent
WHERE = """
def where(batches):
    import mire, pyarrow
    list(batches)
    yield pyarrow.RecordBatch.from_pydict({"path": [mire.__file__]})
print(spark.range(1).mapInArrow(where, "path string").collect()[0].path)
"""
LIST = """
import obstore
from obstore.store import S3Store
store = S3Store("{bucket}", endpoint="{url}", region="us-east-1", client_options={{"allow_http": True}},
                access_key_id="any", secret_access_key="any", virtual_hosted_style_request=False)
print([each["path"] for page in obstore.list(store) for each in page if each["path"].startswith("logs/")])
"""


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Our S3 server; it accepts any credentials."""
    with S3Server(buckets=[BUCKET]) as started:
        yield started


def submit(master: str, directory: Path, requests: list[dict[str, Any]]) -> list[list[Any]]:
    """Have `spark-submit` run a program that does one thing after the other: exit code, stdout, stderr of each."""
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.executor.memory": SMALL,
        "spark.cores.max": "1",
        "spark.task.maxFailures": "1",
    }
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    environ |= {**ACCESS, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    (directory / "requests").write_text("".join(json.dumps({**each, "environ": {}}) + "\n" for each in requests))
    program = Path(__file__).parents[1] / "sparkclient.py"
    done = subprocess.run(
        [
            *(str(HOME / "bin/spark-submit"), "--master", master),
            *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
            *(str(program), str(directory / "requests"), str(directory / "answers")),
        ],
        env=environ,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()[-3000:]
    answers = [json.loads(line) for line in (directory / "answers").read_text().splitlines()]
    assert len(answers) == 1 + len(requests)
    return answers[1:]


def with_python(python: Path | str) -> dict[str, Any]:
    """The Python that tasks of this session are run by from now on, as PYSPARK_PYTHON says at its start."""
    return {"code": f"spark.sparkContext.pythonExec = {str(python)!r}"}


def test_a_submitted_job_minds_the_pythons_of_its_workers(
    spark_cluster: Cluster, server: S3Server, bucket_repo: Callable[..., Path], wheel_python: Path, tmp_path: Path
) -> None:
    """In the session of `spark-submit`, a worker whose mire, Python or packages differ is told, and nothing is written.

    With the wheel alone the same job then does its work; another master than that of the session is refused.
    """
    repo = bucket_repo(server.url, BUCKET)
    log = tmp_path / "home/.swamp/repos/00000000-0000-4000-8000-000000000001/logs/one"
    log.parent.mkdir(parents=True)
    log.write_text("content")
    (tmp_path / "nothing").mkdir()
    push = ["push", "--all", "--pipeline", "--json", "--repo", str(repo)]
    bad: list[tuple[Path | str, str, str]] = [
        (environment(tmp_path / "bare"), "no_package", "needs mire on every worker, and one has none"),
        (environment(tmp_path / "empty", packages=tmp_path / "nothing"), "no_package", "needs pyarrow on every worker"),
        ("/nonexistent/python", "no_package", "one has no '/nonexistent/python': set PYSPARK_PYTHON"),
        (other_python(tmp_path / "other"), "version_mismatch", f"a worker runs mire {OTHER} on Python"),
        (
            other_obstore(tmp_path / "store", wheel_python),
            "version_mismatch",
            f"with obstore {OTHER}: install the same",
        ),
    ]
    newer = newer_python(tmp_path / "newer")
    if newer is not None:
        bad.append((newer, "version_mismatch", "driver and workers run different Pythons"))
    requests: list[dict[str, Any]] = [
        {"code": "print(spark.sparkContext.master)"},
        {"arguments": [*push, "--master", "spark://127.0.0.1:1"]},
    ]
    for python, _, _ in bad:
        requests += [with_python(python), {"arguments": push}]
    requests += [{"code": LIST.format(url=server.url, bucket=BUCKET)}]
    requests += [with_python(wheel_python), {"code": WHERE}, {"arguments": push}]
    spark_cluster.have_workers(1)
    (master, elsewhere, *failed, listed, _, where, pushed) = submit(spark_cluster.master, tmp_path, requests)

    assert master == [0, f"{spark_cluster.master}\n", ""]
    check_refused(elsewhere, "other_session", "not at 'spark://127.0.0.1:1'")
    for (_, kind, message), answer in zip(bad, failed[1::2], strict=True):
        check_refused(answer, kind, message)
    assert listed == [0, "[]\n", ""]
    assert where[1].startswith(str(wheel_python.parents[1]))
    assert (pushed[0], json.loads(pushed[1])["sent"], pushed[2]) == (0, ["logs/one"], "")
    if newer is None:
        pytest.skip("all but the worker of another Python was shown: this machine has none (python3.12 or newer)")


def check_refused(answer: list[Any], kind: str, message: str) -> None:
    """One typed error, and nothing else was said."""
    code, out, err = answer
    told = json.loads(err)
    assert (code, out, told["kind"]) == (USAGE, "", kind), err
    assert message in told["message"]
