"""The classes of Spark in one file, which Java maps instead of reading and checking each: it starts in half the time.

Owns: where the file is, for which Java and Spark it is, and making it.
Must not know: what a job does, how a session is started.
Keeps: one that is not whole is never given to Java, which would not start; making one disturbs nobody who has one.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

from mire.errors import ConfigError, RemoteError, shown
from mire.pipeline.java import cache_dir, find_java_home

PLACE: Final = "MIRE_SPARK_CLASSES"
"""The directory of these files, if it is not the user's cache."""
_LISTING: Final = "-XX:DumpLoadedClassList="
_QUIET: Final = "-Xlog:disable"
"""A file that does not fit is passed over, and need not be told of."""
_OF_MODULES: Final = ("--add-", "--enable-")
_THEIRS: Final = re.compile(r"-Xshare|SharedArchiveFile|ArchiveClassesAtExit|DumpLoadedClassList")
"""Options of users who have a file of their own, or want none."""
_SAID_MAX: Final = 300

_EXERCISE: Final = """
import json, sys
from mire.pipeline.session import open_session
from pyspark.sql import functions as F, Window
with open_session() as spark:
    frame = spark.range(1000).withColumn("name", F.col("id").cast("string")).repartition(2)
    frame = frame.mapInArrow(lambda batches: batches, frame.schema).persist()
    ranked = frame.withColumn("rank", F.row_number().over(Window.partitionBy(F.col("id") % 7).orderBy("name")))
    ranked.select("id", "rank").join(frame, "id", "left").groupBy("rank").agg(F.count("id"), F.max("name")).toArrow()
    frame.write.parquet(sys.argv[1])
    spark.read.parquet(sys.argv[1]).where("id > 5").orderBy("name").limit(3).collect()
    java = spark.sparkContext._jvm
    options = java.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    with open(sys.argv[2], "w") as told:
        json.dump([java.System.getProperty("java.class.path"), list(options)], told)
"""
"""What jobs make Java load."""


def classes_option(environ: Mapping[str, str], theirs: str) -> str:
    """The option to start Java with, besides those of the user; empty when there is no file, or it is not wanted."""
    found = None if _THEIRS.search(theirs) else find_classes(environ)
    return "" if found is None else f'"-XX:SharedArchiveFile={found}" {_QUIET}'


def find_classes(environ: Mapping[str, str]) -> str | None:
    """The file for the Java and the Spark that would be started; its size is in its name, and must be that."""
    place, key = _place(environ), _key(environ)
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(key) and entry.name == _name(key, entry.stat().st_size):
                return entry.path
    return None


def make_classes(environ: Mapping[str, str]) -> str:
    """Start a Spark, let it do what jobs do, and keep the classes that it loaded; the file."""
    place, key = _place(environ), _key(environ)
    try:
        os.makedirs(place, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".spark-", dir=place) as directory:
            made = _dump(environ, directory)
            with open(made, "rb") as file:
                os.fsync(file.fileno())
                final = os.path.join(place, _name(key, os.fstat(file.fileno()).st_size))
            os.rename(made, final)
        for name in os.listdir(place):
            if name.startswith(key) and name != os.path.basename(final):
                os.unlink(os.path.join(place, name))
    except OSError as error:
        raise ConfigError(
            f"the classes of Spark cannot be kept in {shown(place)} ({error.strerror}): give a directory with {PLACE}"
        ) from error
    return final


def _dump(environ: Mapping[str, str], directory: str) -> str:
    """Let a Spark tell what it loads, and a Java keep it; the file. Any Java can do it in these two steps."""
    listed, told, made = (os.path.join(directory, name) for name in ("list", "told.json", "classes.jsa"))
    also = f'{environ.get("SPARK_SUBMIT_OPTS", "")} "{_LISTING}{listed}"'
    at_work = {**environ, "SPARK_SUBMIT_OPTS": also, "SPARK_REMOTE": ""}
    _run([sys.executable, "-c", _EXERCISE, os.path.join(directory, "table"), told], at_work)
    with open(told, encoding="utf-8") as file:
        path, options = json.load(file)
    modules = [each for each in options if each.startswith(_OF_MODULES)]
    keep = ["-Xshare:dump", f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={made}", _QUIET]
    _run([_java(environ), *modules, *keep, "-cp", path], environ)
    if not os.path.isfile(made):
        raise RemoteError("Java was asked to keep the classes of Spark, and did not: try another Java", kind="spark")
    return made


def _run(command: list[str], environ: Mapping[str, str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own words
        command, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = " ".join(f"{done.stdout} {done.stderr}".split())[-_SAID_MAX:]
        raise RemoteError(f"the classes of Spark cannot be kept: {said}", kind="spark")


def _place(environ: Mapping[str, str]) -> str:
    return environ.get(PLACE) or cache_dir(environ)


def _key(environ: Mapping[str, str]) -> str:
    java = os.path.realpath(_java(environ))
    home = os.path.dirname(os.path.dirname(java))
    if os.path.dirname(home) == cache_dir(environ):
        java = os.path.basename(home)  # made of what it runs: the same for every user
    spark = find_spec("pyspark")
    parts = java, _release(java), version("pyspark"), environ.get("SPARK_HOME", ""), str(spark and spark.origin)
    return f"spark-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:16]}"


def _java(environ: Mapping[str, str]) -> str:
    home = find_java_home(environ)
    return shutil.which("java", path=environ.get("PATH")) or "java" if home is None else os.path.join(home, "bin/java")


def _release(java: str) -> str:
    with suppress(OSError), open(os.path.join(os.path.dirname(os.path.dirname(java)), "release"), "rb") as file:
        return file.read().decode(errors="replace")
    return ""


def _name(key: str, size_bytes: int) -> str:
    return f"{key}-{size_bytes}.jsa"
