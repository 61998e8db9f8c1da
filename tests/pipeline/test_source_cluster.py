"""The data source on a real cluster, over Spark Connect: workers have only the package, and one of them dies."""

from collections.abc import Callable
from pathlib import Path

from mire.testing.faults import Run
from mire.testing.s3server import S3Server
from sparkconnect import Connect
from sparks import Cluster

MODELS = 20
WRITE = """
from pyspark.sql import functions as F
rows = spark.range({models}).select(
    F.lit("aws/ec2/vpc").alias("model_type"), F.concat(F.lit("vpc-"), "id").alias("model_id"),
    F.lit("state").alias("name"), F.to_json(F.struct("id")).alias("attributes"))
rows.repartition(4).write.format("mire").mode("append").save({path!r})
"""
READ = """
import json
from pyspark.sql import functions as F
found = spark.read.format("mire").option("path", {path!r}).load()
read = found.select("model_id", "version", F.get_json_object("attributes", "$.id").alias("id"), "_error").collect()
print(json.dumps(sorted([row.model_id, row.version, int(row.id), row._error] for row in read)))
"""


def test_a_worker_dies_under_a_write_and_a_read_over_connect(
    spark_cluster: Cluster, spark_connect: Connect, bucket_repo: Callable[..., Path], tmp_path: Path
) -> None:
    """Rows are written and read through Spark Connect on a cluster; a worker dies in each: every row is there once.

    An export over Connect has them all, too.
    """
    with S3Server(buckets=["bucket"]) as server:
        path = f"s3://bucket?region=us-east-1&forcePathStyle=true&endpoint={server.url}"
        spark_cluster.have_workers()
        server.inject(Run(spark_cluster.replace_worker), operation="PutObject", key="_control/mire-spark/*", times=1)
        spark_connect.run(WRITE.format(path=path, models=MODELS))
        assert not [key for key in server.keys("bucket") if key.startswith("_control/mire-spark/")]
        spark_cluster.have_workers()
        server.inject(
            Run(spark_cluster.kill_worker), operation="GetObject", key="data/*/metadata.yaml", skip=MODELS // 2, times=1
        )
        found = spark_connect.run(READ.format(path=path))
        repo = bucket_repo(server.url, "bucket")
        exported = spark_connect.mire("export", str(tmp_path / "out"), "--repo", str(repo))
    assert found == sorted([f"vpc-{number}", 1, number, None] for number in range(MODELS))
    assert exported["versions"] == MODELS
