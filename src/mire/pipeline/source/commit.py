"""The commit of a write: rows become versions, all of them visible together, and once for each transaction.

Owns: the record of transactions, and what is checked before the first version is made.
Must not know: Spark, where rows waited.
Keeps: whatever cannot be written is found before the first version is made; a version says which row of which
transaction it is, where no row, tag or owner can say so, so that the same write again adds what is missing, and
nothing twice, wherever the first one died.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from mire.api import Model, Store
from mire.errors import FormatError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_global, hold_models
from mire.flow.mark import marking
from mire.flow.markers import offer_again, restore_markers
from mire.flow.read import load_metadata, numbers_in
from mire.flow.together import finish_decided, together
from mire.flow.version import latest_path, publish
from mire.flow.write import VERSIONS_KEPT, check_may_write
from mire.model.artifact import Metadata, ModelRef, Owner, parse_owner
from mire.model.names import DataName, ModelId, ModelType
from mire.plan.source import Txn, policy_of
from mire.wire.layout import LATEST, METADATA, name_dir
from mire.wire.metadatafast import TXN

RECORDS: Final = ModelType("mire/spark-write")
RECORD: Final = DataName("txn")
"""Where transactions are on record: a model for each application, whose latest version has the number of its last."""

_LOCKS_MAX: Final = 200
"""Models that are locked one by one; of more, the whole namespace is held: one lock instead of so many requests."""

Row = Mapping[str, Any]
_Name = tuple[ModelRef, DataName]
_There = Mapping[_Name, Collection[int]]
"""The rows of each name that are versions already, by their places among the rows of that name."""


def commit_rows(ds: Datastore, rows: Callable[[], Iterable[Row]], txn: Txn | None = None) -> int:
    """Write all rows as versions and publish them together; how many there were, less those of the same transaction."""
    finish_decided(ds)
    owners: set[tuple[ModelRef, DataName, str | None]] = set()
    wanted: Counter[_Name] = Counter()
    for row in rows():
        model, name = _model(row), DataName(row["name"])
        owners.add((model, name, row["owner"]))
        wanted[model, name] += 1
    total = wanted.total()
    if txn is not None:
        wanted[_record(txn), RECORD] += 1
    with _held(ds, {model for model, _ in wanted}) as hold:
        restore_markers(ds, wanted)
        if txn is not None and _recorded(ds, txn) > txn.version:
            return 0
        there = {} if txn is None else _written(ds, wanted, txn, hold)
        missing = wanted - Counter({name: len(places) for name, places in there.items()})
        for model, name, owner in owners:
            check_may_write(ds, model, name, _owner(model, owner), revive=False)
        with together(ds, hold, _by_model(missing)) as batch:
            count = _write(batch, rows(), there, txn)
            if txn is not None and missing[_record(txn), RECORD]:
                said = {"txnVersion": txn.version, "versions": total}
                Model(batch, _record(txn), None, extra=_extra(txn, 0)).put(RECORD, said, tags=_tags(txn))
    return count


def _write(ds: Datastore, rows: Iterable[Row], there: _There, txn: Txn | None) -> int:
    """Write the rows that are not there."""
    places: Counter[_Name] = Counter()
    count = 0
    for row in rows:
        key = _model(row), DataName(row["name"])
        place, places[key] = places[key], places[key] + 1
        if place not in there.get(key, ()):
            _put(Model(ds, key[0], row["model_name"], extra=_extra(txn, place)), row, _tags(txn))
            count += 1
    return count


def _written(ds: Datastore, names: Mapping[_Name, int], txn: Txn, hold: Hold) -> _There:
    """The rows that are versions already: of a driver that died, or was not heard.

    An index in shards is not replaced in one step. What a commit that was cut short left is completed here: a name
    whose versions are listed, and its marker not, is published; and the push sees to it that their shards are listed.
    """
    found: dict[_Name, Collection[int]] = {}
    rels: list[str] = []
    for (model, name), count in names.items():
        said: dict[object, int] = {_extra(txn, place)[TXN]: place for place in range(count)}
        numbers: dict[int, int] = {}
        for number in numbers_in(ds.path_of(name_dir(model, name))):
            place = said.get(_said(ds, model, name, number))
            if place is not None:
                numbers[number] = place
        if numbers:
            found[model, name] = set(numbers.values())
            latest = max(numbers)
            with marking(ds, latest_path(ds, model, name)):
                publish(ds, model, name, latest, hold)
            rels += [f"{name_dir(model, name)}/{rest}" for rest in (f"{latest}/{METADATA}", LATEST)]
    if rels:
        offer_again(ds, rels)
    return found


def _record(txn: Txn) -> ModelRef:
    return ModelRef(model_type=RECORDS, model_id=txn.app)


def _said(ds: Datastore, model: ModelRef, name: DataName, number: int) -> object:
    """What a version says of its transaction."""
    try:
        metadata = load_metadata(ds, model, name, number)
    except FormatError:
        return None
    return None if metadata is None else metadata.extra.get(TXN)


def _extra(txn: Txn | None, place: int) -> dict[str, str]:
    """What a version is known by: which row of its name it is. A tag would not do: copies of a version have it, too."""
    return {} if txn is None else {TXN: f"{txn.app}:{txn.version}:{place}"}


def _tags(txn: Txn | None) -> dict[str, str]:
    """For whoever looks for what a write made."""
    return {} if txn is None else {TXN: f"{txn.app}:{txn.version}"}


def _by_model(names: Counter[_Name]) -> dict[ModelRef, dict[DataName, int]]:
    found: dict[ModelRef, dict[DataName, int]] = {}
    for (model, name), count in names.items():
        found.setdefault(model, {})[name] = count
    return found


def _held(ds: Datastore, models: Collection[ModelRef]) -> AbstractContextManager[Hold]:
    return hold_models(ds, models) if len(models) <= _LOCKS_MAX else hold_global(ds, models=tuple(models))


def _recorded(ds: Datastore, txn: Txn) -> int:
    """The last transaction of an application that counts; -1 when there is none."""
    try:
        found = Store(ds).model(RECORDS, txn.app).get(RECORD)
    except NotFoundError:
        return -1
    said = found.json()
    number = said.get("txnVersion") if isinstance(said, dict) else None
    if type(number) is not int:
        raise FormatError(f"{found.label} is {shown(said)}, no record of a transaction: delete it to begin anew")
    return number


def _put(model: Model, row: Row, tags: Mapping[str, str]) -> Metadata:
    policy = row["version_policy"]
    return model.put(
        row["name"],
        row["content"],
        tags={**dict(row["tags"]), **tags},
        content_type=row["content_type"],
        lifetime=row["lifetime"],
        version_policy=VERSIONS_KEPT if policy is None else policy_of(policy),
        streaming=row["streaming"],
        owner=row["owner"],
    )


def _model(row: Row) -> ModelRef:
    return ModelRef(model_type=ModelType(row["model_type"]), model_id=ModelId(row["model_id"]))


def _owner(model: ModelRef, text: str | None) -> Owner:
    return Owner(owner_type="manual", owner_ref=model.model_id) if text is None else parse_owner(text)
