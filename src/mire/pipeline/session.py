"""One way to a SparkSession: embedded by default, any cluster by configuration.

Owns: which session a job runs in, and what an embedded one is started with.
Must not know: what a job does.
Keeps: a session that somebody else started, in whatever thread, is used and never stopped; an embedded one listens on
the loopback interface only; what is started here ends here; what the user wants of his Java counts.
"""

import contextlib
import importlib.util
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from mire.edge import process
from mire.errors import ConfigError, RemoteError, shown
from mire.pipeline.classes import classes_option
from mire.pipeline.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMBEDDED: Final = "local[*]"
LOG_LEVEL: Final = "MIRE_SPARK_LOG"
_REMOTE: Final = "SPARK_REMOTE"
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
_CONNECT: Final = "sc://"
_LOOPBACK: Final = "127.0.0.1"
_SAID_MAX: Final = 400
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_PARTITIONS_A_CORE: Final = 2
_LOCAL: Final = re.compile(r"local(?:\[(\*|\d+)(?:,.*)?\])?")
_CLUSTER_CORES: Final = 16
"""What a cluster is taken to have before it was asked: more would change little."""
_JAVA: Final = "spark.driver.extraJavaOptions"
_JAVA_ALSO: Final = "SPARK_SUBMIT_OPTS"
"""Options of a Java that are added to those in the settings of Spark, and come before them: the last one counts."""

_EVERYWHERE: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A table of the driver's becomes partitions at once, instead of a literal inside the query.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.session.timeZone": "UTC",
}
_STARTED: Final = {
    "spark.app.name": "mire",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

MOVING: Final = {
    # The second lets it choose the collector of one thread, where nobody chose another: two are refused.
    _JAVA: "-XX:TieredStopAtLevel=1 -XX:+NeverActAsServerClassMachine",
    "spark.sql.codegen.wholeStage": "false",
}
"""For jobs whose work is done in Python: Java compiles little, and leaves the processors to the tasks."""


def _embedded() -> dict[str, str]:
    return {
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
    }


@contextlib.contextmanager
def open_session(master: str | None = None, *, conf: Mapping[str, str] | None = None) -> "Iterator[SparkSession]":
    """The session to run in: one that is there, that of `spark-submit`, a cluster that was named, or an embedded one.

    `master` is a Spark master, or the address (`sc://…`) of a Spark Connect server; without one SPARK_REMOTE counts.
    """
    check_installed()
    found = find_session()
    if found is not None:
        _check_master(found, master)
        yield found
        return
    spark = _start(master, conf or {})
    try:
        _fit(spark)
        yield spark
    finally:
        if _SUBMITTED not in os.environ:
            _stop(spark)


def _stop(spark: "SparkSession") -> None:
    """End a session that was started here; one whose Java is gone has ended, and is forgotten."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spark.stop()
    except Exception:  # noqa: BLE001 - whatever a Java that is gone makes of it; why it went is told by the job
        _forget()


def _forget() -> None:
    """Let the next session of this process start a Java of its own: Spark would go on asking the one that is gone."""
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    kept: Any = SparkSession
    kept._instantiatedSession = kept._activeSession = None  # noqa: SLF001
    kept = SparkContext
    kept._active_spark_context = kept._gateway = kept._jvm = None  # noqa: SLF001


def expected_cores(master: str | None, environ: Mapping[str, str]) -> int:
    """How many tasks would run at once in the session to run in, before it is started."""
    found = find_session()
    if found is None:
        return cores_at(master, environ)
    from mire.pipeline.jobs.cores import cores_of  # noqa: PLC0415 - with Spark only

    return cores_of(found)


def cores_at(master: str | None, environ: Mapping[str, str]) -> int:
    """What a place has that was not asked yet: this machine, so many cores of it, or a cluster."""
    if master is None:
        is_elsewhere = bool(environ.get(_REMOTE)) or _SUBMITTED in environ
        return _CLUSTER_CORES if is_elsewhere else os.cpu_count() or 1
    local = _LOCAL.fullmatch(master)
    if local is None:
        return _CLUSTER_CORES
    return int(local[1] or 1) if local[1] != "*" else os.cpu_count() or 1


def _fit(spark: "SparkSession") -> None:
    """As many partitions as keep all cores busy, unless somebody chose a number: Spark's own is for large clusters.

    And as quiet as its Java.
    """
    if is_connected(spark):
        return
    context: Any = spark.sparkContext
    # What counts for Spark in this process writes to standard error when its Java is gone; the job tells that.
    with contextlib.suppress(AttributeError):
        context._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001
    if not context.getConf().contains(_PARTITIONS):
        spark.conf.set(_PARTITIONS, str(_PARTITIONS_A_CORE * int(context.defaultParallelism)))


def check_installed() -> None:
    """Refuse to go on without the packages that only jobs need; ask before a job is imported."""
    for name in ("pyspark", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            raise ConfigError(
                f"this runs on Spark, and the package {name} is not installed: pip install 'mire[spark]'",
                kind="no_spark",
            )


def find_session() -> "SparkSession | None":
    """The session that this process has already, whichever thread started it; a context without one gets one."""
    if "pyspark" not in sys.modules:
        return None  # and it is not imported to be asked
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        try:
            found: SparkSession | None = SparkSession.active()
        except PySparkRuntimeError:
            found = None
        context: Any = SparkContext._active_spark_context  # noqa: SLF001
        # One whose context somebody stopped is still the last one that Spark knows; a connected one has no context.
        if found is not None and getattr(getattr(found, "_sc", found), "_jsc", found) is not None:
            return found
        return None if context is None else SparkSession(context)
    except OSError as error:
        raise RemoteError(
            f"the Spark session of this process does not answer ({error}): stop it, or do this in another process",
            kind="spark",
        ) from error


def _check_master(spark: "SparkSession", master: str | None) -> None:
    """Refuse to run in a session that is not where somebody wants to run."""
    if master is None:
        return
    theirs, is_same = _master_of(spark, master)
    if not is_same:
        raise ConfigError(
            f"this process already has a Spark session, at {shown(theirs)}, not at {shown(master)}: stop it, or do"
            " without --master",
            kind="other_session",
        )


def is_connected(spark: "SparkSession") -> bool:
    """Whether a session is one of Spark Connect: it has no context, and other ways to be asked."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _master_of(spark: "SparkSession", wanted: str) -> tuple[str, bool]:
    """Where a session runs, and whether that is the place that is wanted."""
    if is_connected(spark):
        theirs = f"{_CONNECT}{_endpoint_of(spark)}"
        return theirs, wanted.startswith(_CONNECT) and _endpoint_in(wanted) == _endpoint_of(spark)
    theirs = str(spark.sparkContext.master)
    return theirs, theirs == wanted


def _endpoint_of(spark: Any) -> str:
    # Spark shows the host, and not the port: two servers of one host are two places.
    return str(spark.client._builder.endpoint)  # noqa: SLF001


def _endpoint_in(address: str) -> str:
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415 - only who has Connect has it

    return str(DefaultChannelBuilder(address).endpoint)


def _start(master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    # What is said on the command line counts more than the environment; an empty variable says nothing.
    remote = os.environ.get(_REMOTE) if master is None else master
    if remote and (master is None or remote.startswith(_CONNECT)):
        return _connect(remote, conf)
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder: Any = SparkSession.builder
    if _SUBMITTED in os.environ:
        submitted = _opened(
            lambda: _configured(builder, {**_EVERYWHERE, **_of_session(conf)}).getOrCreate(), master, None
        )
        _check_master(submitted, master)
        return submitted
    wanted = {**_STARTED, **_EVERYWHERE}
    is_embedded = master is None or master.startswith("local")
    if is_embedded:
        wanted |= _embedded()
    wanted |= {name: value for name, value in conf.items() if name != _JAVA}
    environment = {**_environment(is_embedded=is_embedded), _JAVA_ALSO: _java_options(conf.get(_JAVA, ""))}
    with _set(environment), _quiet() as said:
        return _opened(_configured(builder.master(master or EMBEDDED), wanted).getOrCreate, master, said)


def _java_options(ours: str) -> str:
    """Options to start a Java with, besides those in the settings of Spark."""
    # An address has no blanks and no commas, whatever the path it is of: both would separate something.
    logging = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    theirs = os.environ.get(_JAVA_ALSO, "")
    classes = classes_option(process.environ(), f"{theirs} {os.environ.get('JDK_JAVA_OPTIONS', '')}")
    return " ".join(each for each in (logging, classes, ours, theirs) if each)


def _configured(builder: Any, conf: Mapping[str, str]) -> Any:
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder


def _of_session(conf: Mapping[str, str]) -> dict[str, str]:
    """What a session may choose whose Java somebody else started."""
    return {name: value for name, value in conf.items() if name.startswith("spark.sql.")}


def _connect(remote: str, conf: Mapping[str, str]) -> "SparkSession":
    try:
        import pyspark.sql.connect.session  # noqa: F401, PLC0415 - needs packages of its own
    except ImportError as error:
        raise ConfigError(
            f"{shown(remote)} is a Spark Connect address, which needs more packages ({error}): pip install"
            " 'mire[spark-connect]'",
            kind="no_spark",
        ) from None
    from pyspark.sql import SparkSession  # noqa: PLC0415

    wanted = {"spark.sql.session.timeZone": "UTC", **_of_session(conf)}
    # Not the builder of the connected session itself: functions would then look for a context of this process.
    builder: Any = SparkSession.builder
    # Spark itself refuses another address than that of the environment. A session of our own, which we may stop.
    with _set({_REMOTE: None}):
        return _opened(lambda: _configured(builder.remote(remote), wanted).create(), remote, None)


def _opened(start: Any, master: str | None, said: IO[str] | None) -> "SparkSession":
    try:
        spark: SparkSession = start()
    except Exception as error:
        text = str(error)
        if said is not None:
            said.seek(0)
            text = f"{text} {said.read()}"
        raise RemoteError(
            f"Spark at {shown(master or EMBEDDED)} cannot be started: {' '.join(text.split())[:_SAID_MAX]}; set"
            f" {LOG_LEVEL}=info to see what it says",
            kind="spark",
        ) from error
    return spark


def _environment(*, is_embedded: bool) -> dict[str, str | None]:
    """What Spark reads from the environment when it starts."""
    home = find_java_home(process.environ())
    # Where a Connect server is named, Spark would not start anything here.
    wanted: dict[str, str | None] = dict.fromkeys((_REMOTE, "SPARK_CONNECT_MODE_ENABLED"))
    wanted["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or sys.executable
    wanted["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if home is not None:
        wanted["JAVA_HOME"] = home
    if is_embedded:
        wanted |= {"SPARK_LOCAL_IP": _LOOPBACK, "PYSPARK_PYTHON": sys.executable}
    return wanted


@contextlib.contextmanager
def _set(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Variables of the environment for a while, None for none; it is as it was afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    _put(variables)
    try:
        yield
    finally:
        _put(before)


def _put(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def _quiet() -> Iterator[IO[str] | None]:
    """Keep what Java says on standard error apart, for an error message; it keeps the file for as long as it lives."""
    if os.environ.get(LOG_LEVEL):
        yield None
        return
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        before = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(before, 2)
            os.close(before)
