"""What is asked of the data source: its options, checked, as one value.

Owns: the names and shapes of the options, which of them go together, and which models and names are wanted.
Must not know: Spark, stores.
Keeps: nothing is ignored: a misspelt option is an error with the nearest name, and so is one that means nothing for
what is asked, or a list with nothing in it; never a silent default.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from mire.errors import ConfigError, InputError, shown
from mire.model.backend import Choice, Flag, Number, Option, Schema, Text
from mire.model.lifetime import parse_version_policy
from mire.model.names import VERSION_MAX, ModelId, Namespace, parse_model_id, parse_model_type, parse_namespace
from mire.model.row import NameKey
from mire.plan.option import check_config, check_name, text_of
from mire.wire.layout import DATA, OUTPUTS, RUNS
from mire.wire.partition import JOINT

TABLES: Final = ("artifacts", "versions", "files", "runs", "outputs")
EVERY: Final = "*"
MODES: Final = ("PERMISSIVE", "FAILFAST", "DROPMALFORMED")
Use = Literal["read", "stream", "write"]
_READING: Final = ("read", "stream")
_USES: Final[Mapping[str, tuple[Use, ...]]] = {
    **dict.fromkeys(("table", "models", "latestOnly", "attributes", "content", "mode", "partitions"), _READING),
    "pushdown": ("read",),
    **dict.fromkeys(("stateLocation", "startingFrom", "maxVersionsPerTrigger", "maxFilesPerTrigger"), ("stream",)),
    **dict.fromkeys(("owner", "txnAppId", "txnVersion"), ("write",)),
}
"""What options are for, those that are not for everything."""
_OF_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "models": ("artifacts", "versions"),
    "latestOnly": ("artifacts", "versions"),
    "attributes": ("artifacts",),
    "content": ("artifacts",),
}
"""The tables for which options mean something, those that do not for all."""
_COUNT: Final = re.compile(r"[0-9]{1,16}")
_MOST: Final = 2**31 - 1
_WHAT: Final = "option of format 'mire'"

SCHEMA: Final = Schema(
    type="format 'mire'",
    title="mire for Spark",
    description="Artifacts, index entries and records as tables.",
    credentials="the provider's own settings on every machine",
    options=(
        Option(name="path", meaning="the store: a directory, file:///…, s3://…, gs://… or @scope/type:{json}"),
        Option(name="repo", meaning="a repository, whose settings name the store"),
        Option(name="namespace", meaning="the namespace to read or write; that of the repository unless given"),
        Option(name="namespaces", meaning="several namespaces to read, with commas between them; * is every one"),
        Option(name="table", meaning="what to read", shape=Choice(words=TABLES), default="artifacts"),
        Option(name="models", meaning="TYPE/ID or TYPE/*, with commas between them, or a JSON list"),
        Option(name="latestOnly", meaning="only the latest version of each name", shape=Flag(), default=False),
        Option(
            name="attributes",
            meaning="JSON content as text, as VARIANT, or not at all: it costs a request each version",
            shape=Choice(words=("json", "variant", "none")),
            default="json",
        ),
        Option(name="content", meaning="whether to read the content of versions", shape=Flag(), default=False),
        Option(name="mode", meaning="what becomes of damage", shape=Choice(words=MODES), default=MODES[0]),
        Option(name="pushdown", meaning="let Spark hand filters down", shape=Flag(), default=False),
        Option(
            name="partitions",
            meaning="tasks to read with, at most, all namespaces together",
            shape=Number(least=1, most=100_000),
        ),
        Option(name="stateLocation", meaning="where a stream keeps what it has read: it lives with the checkpoint"),
        Option(
            name="startingFrom",
            meaning="whether a new stream begins with what is there, or with what comes",
            shape=Choice(words=("earliest", "latest")),
            default="earliest",
        ),
        Option(name="maxVersionsPerTrigger", meaning="rows of a batch", shape=Number(least=1, most=_MOST)),
        Option(name="maxFilesPerTrigger", meaning="the same, by the name Spark has", shape=Number(least=1, most=_MOST)),
        Option(name="owner", meaning="who writes, as TYPE:REF; a column 'owner' wins"),
        Option(name="txnAppId", meaning="the application a write belongs to; with txnVersion it is done once"),
        Option(
            name="txnVersion",
            meaning="the number of the write: one that is not above the last of its application adds nothing",
            shape=Number(least=0, most=VERSION_MAX),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The models that are wanted: one, or (`model_id` None) all of a type and of the types below it."""

    model_type: str
    model_id: str | None = None

    @property
    def prefix(self) -> str:
        """The directory all of it is in, below `data`."""
        return f"{self.model_type}/" if self.model_id is None else f"{self.model_type}/{self.model_id}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Txn:
    """A write that is to be done once: the application, and the number of the write, which only grows."""

    app: ModelId
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What was asked for, checked."""

    path: str | None
    repo: str | None
    namespaces: tuple[Namespace, ...]
    """Empty: the one that the repository names, or none; unless all are wanted."""
    is_every_namespace: bool
    table: str
    models: tuple[Wish, ...]
    is_latest_only: bool
    attributes: str
    has_content: bool
    mode: str
    has_pushdown: bool
    partitions: int | None
    state_location: str | None
    starts_latest: bool
    rows_max: int | None
    owner: str | None
    txn: Txn | None


def parse_source_options(given: Mapping[str, str], use: Use | None = None) -> SourceOptions:
    """Options as Spark hands them over: all text, their names in lower case; `use` is what for, once that is known."""
    names = {option.name.lower(): option for option in SCHEMA.options}
    config: dict[str, Any] = {}
    for name, value in given.items():
        option = names.get(name.lower()) or check_name(name, SCHEMA, what=_WHAT)
        words = {word.lower(): word for word in option.shape.words} if isinstance(option.shape, Choice) else {}
        config[option.name] = words.get(value.lower(), value) if words else _text(value, option)
    checked = check_config(config, SCHEMA, repo_dir="", environ={}, what=_WHAT)
    _check_meant(config, checked["table"], use)
    if (checked["path"] is None) == (checked["repo"] is None):
        raise ConfigError(f"{_WHAT}: give 'path' (a store) or 'repo' (a repository whose settings name it), not both")
    if checked["namespace"] is not None and checked["namespaces"] is not None:
        raise ConfigError(f"{_WHAT}: give 'namespace' or 'namespaces', not both")
    one = checked["namespace"]
    spaces = _items("namespaces", checked["namespaces"]) if one is None else [one]
    is_every = spaces == [EVERY]
    if EVERY in spaces and not is_every:
        raise ConfigError(f"{_WHAT}: '{EVERY}' is every namespace, so it stands alone: {shown(', '.join(spaces))}")
    return SourceOptions(
        path=checked["path"],
        repo=checked["repo"],
        namespaces=() if is_every else tuple(dict.fromkeys(parse_namespace(each) for each in spaces)),
        is_every_namespace=is_every,
        table=checked["table"],
        models=tuple(_wish(each) for each in _items("models", checked["models"])),
        is_latest_only=checked["latestOnly"],
        attributes=checked["attributes"],
        has_content=checked["content"],
        mode=checked["mode"],
        has_pushdown=checked["pushdown"],
        partitions=checked["partitions"],
        state_location=checked["stateLocation"],
        starts_latest=checked["startingFrom"] == "latest",
        rows_max=checked["maxVersionsPerTrigger"] or checked["maxFilesPerTrigger"],
        owner=checked["owner"],
        txn=_txn(checked["txnAppId"], checked["txnVersion"]),
    )


def _check_meant(config: Collection[str], table: str, use: Use | None) -> None:
    """Refuse what would make no difference: whoever gave it expects one."""
    for name in config:
        uses, tables = _USES.get(name), _OF_TABLES.get(name)
        if use is not None and uses is not None and use not in uses:
            raise ConfigError(f"{_WHAT}: '{name}' is for a {' or '.join(uses)}, not for a {use}: leave it out")
        if tables is not None and table not in tables:
            few = " and ".join(tables)
            raise ConfigError(f"{_WHAT}: '{name}' means nothing for the table '{table}', only for {few}: leave it out")
    if {"maxVersionsPerTrigger", "maxFilesPerTrigger"} <= set(config):
        raise ConfigError(f"{_WHAT}: 'maxVersionsPerTrigger' and 'maxFilesPerTrigger' are the same: give one of them")


def _txn(app: str | None, version: int | None) -> Txn | None:
    if (app is None) != (version is None):
        raise ConfigError(f"{_WHAT}: 'txnAppId' and 'txnVersion' go together: a name, and a number that grows")
    if app is None or version is None:
        return None
    return Txn(app=parse_model_id(app), version=version)


def _text(value: str, option: Option) -> object:
    lowered = value.lower() if isinstance(option.shape, Flag) else value
    return value if isinstance(option.shape, Text) else text_of(lowered, option.shape)


def _items(name: str, text: str | None) -> list[str]:
    """The items of a list: JSON, or with commas between them."""
    if text is None:
        return []
    items: Any = [item.strip() for item in text.split(",") if item.strip()]
    if text.lstrip().startswith("["):
        try:
            items = json.loads(text)
        except ValueError:
            items = None
    if items == []:
        # A program that worked out a list, and found nothing, does not mean everything.
        raise ConfigError(f"{_WHAT}: '{name}' is {shown(text)}, with nothing in it: name some, or leave it out")
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ConfigError(f'{_WHAT}: \'{name}\' is {shown(text)}, no JSON list of texts: write ["one", "two"]')
    return items


def _wish(text: str) -> Wish:
    kind, slash, model_id = text.rpartition("/")
    if not slash:
        raise InputError(f"{_WHAT}: model {shown(text)} is not TYPE/ID: write TYPE/* for all of a type")
    if model_id == "*":
        return Wish(model_type=parse_model_type(kind))
    return Wish(model_type=parse_model_type(kind), model_id=parse_model_id(model_id))


def policy_of(text: str) -> int | str:
    """A version policy from its text: a number, or an age."""
    policy = int(text) if _COUNT.fullmatch(text) else text
    parse_version_policy(policy)
    return policy


def check_column(name: str, known: Collection[str], *, what: str) -> None:
    """Refuse a column that is none, with the nearest that is."""
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean '{near[0]}'?" if near else f"use some of {', '.join(known)}"
    raise InputError(f"{what} has no column {shown(name)}: {advice}", kind="unknown_column", column=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """What rows must be like, as far as it can be told from a path: of each column the values that may be."""

    values: tuple[tuple[str, frozenset[str]], ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()

    def takes(self, key: NameKey) -> bool:
        """Whether rows of a name can be wanted."""
        if not self.values and not self.prefixes:
            return True
        found = {
            "namespace": key.namespace,
            "model_type": key.model.model_type,
            "model_id": key.model.model_id,
            "name": key.name,
        }
        return all(found[column] in values for column, values in self.values) and all(
            found[column].startswith(prefix) for column, prefix in self.prefixes
        )

    @property
    def wishes(self) -> tuple[Wish, ...]:
        """The models that this comes to; empty when it does not say."""
        values = dict(self.values)
        types, ids = values.get("model_type"), values.get("model_id")
        if types is None or ids is None:
            return ()
        return tuple(Wish(model_type=kind, model_id=each) for kind in sorted(types) for each in sorted(ids))


def is_wished(directory: str, wishes: Iterable[Wish]) -> bool:
    """Whether a name's directory is of a wanted model."""
    inside = directory.removeprefix(f"{DATA}/") + "/"
    return any(inside.startswith(wish.prefix) for wish in wishes)


def plan_shards(listed: Iterable[str], *, table: str, wishes: Collection[Wish]) -> tuple[str, ...]:
    """Those of the listed partitions that can hold what a table is made of."""
    if table == "files":
        return tuple(listed)
    top = {"runs": RUNS, "outputs": OUTPUTS}.get(table, DATA)
    below = [name for name in listed if name == top or name.startswith(f"{top}{JOINT}")]
    if top != DATA or not wishes:
        return tuple(below)
    # Names of partitions are not invertible: all that could hold a wanted model are read, and their paths decide.
    joined = [f"{DATA}/{wish.prefix}".removesuffix("/").replace("/", JOINT) for wish in wishes]
    above = tuple(f"{name}{JOINT}" for name in joined)
    return tuple(name for name in below if name in joined or name.startswith(above))
