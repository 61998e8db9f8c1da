"""The latest version of a name by its model's name, in our namespace or another.

Owns: what is told when there is none, or more than one.
Must not know: how rows are found, how content is fetched.
Keeps: an address that names a namespace is answered from that namespace or not at all.
"""

from typing import Any

from mire.errors import ConflictError, NotFoundError, RemoteError, shown
from mire.flow.content import own_content
from mire.flow.datastore import Datastore
from mire.flow.imports import known_imports
from mire.flow.others import load_others
from mire.flow.query import Query, query
from mire.model.names import parse_data_name
from mire.plan.spanning import Address, parse_address, plan_address


def find(ds: Datastore, model: str, name: str) -> dict[str, Any]:
    """The record of the latest version, with its content; `model` is NAME, NAMESPACE:NAME or *:NAME."""
    address, own = parse_address(model), ds.config.namespace
    predicate = plan_address(address, parse_data_name(name), own)
    rows = query(ds, Query(predicate=predicate, all_namespaces=address.is_any)).rows
    spaces = sorted({row["namespace"] for row in rows})
    if not rows:
        raise NotFoundError(f"there is no {shown(name)} of {shown(model)}: {_why(ds, address)}", kind="not_found")
    if len(spaces) > 1:
        names = ", ".join(f"{space}:{address.model_name}" for space in spaces)
        raise ConflictError(f"{shown(model)} is in {len(spaces)} namespaces: name one of {names}", kind="ambiguous")
    record: dict[str, Any] = rows[0]
    if record["namespace"] == own:
        return record | own_content(ds, record, hydrate=True)
    ((_, loaded),) = load_others(ds, [record], hydrate=True)
    if not isinstance(loaded, dict):
        raise RemoteError(f"{shown(name)} of {shown(model)}: {loaded.message}", kind=loaded.kind) from loaded
    return record | loaded


def _why(ds: Datastore, address: Address) -> str:
    known = {each.namespace for each in known_imports(ds)}
    wanted = address.namespace
    if wanted is None or wanted == ds.config.namespace or wanted in known:
        return "nothing of that name is there, or it was deleted"
    return f"no catalog of {wanted} was imported: run 'mire catalog pull --namespaces {wanted}'"
