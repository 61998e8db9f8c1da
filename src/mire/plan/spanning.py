"""Models by name across namespaces: `infra:router`, `*:router`, `router`.

Owns: how such an address is read, and what it asks of a catalog.
Must not know: the catalog.
Keeps: an address with a namespace is never answered with rows of another, be it our own.
"""

import json
from dataclasses import dataclass
from typing import Final

from mire.errors import InputError, shown
from mire.model.names import SOLO, DataName, Namespace, parse_namespace

ANY: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A model by its name; `namespace` None is our own, `is_any` is whichever has it."""

    namespace: Namespace | None
    model_name: str
    is_any: bool = False


def parse_address(text: object) -> Address:
    """An address: what is before the first ':' is a namespace, `*` any, nothing our own."""
    if not isinstance(text, str):
        raise InputError(f"model {shown(text)} is a {type(text).__name__}: give text", kind="bad_name")
    prefix, colon, name = text.partition(":")
    if not colon:
        prefix, name = "", text
    if not name.strip():
        raise InputError(f"model {shown(text)} names no model: give NAME, NAMESPACE:NAME or *:NAME", kind="bad_name")
    if prefix == ANY:
        return Address(namespace=None, model_name=name, is_any=True)
    namespace = parse_namespace(prefix)
    return Address(namespace=None if namespace == SOLO else namespace, model_name=name)


def plan_address(address: Address, name: DataName, own: Namespace) -> str:
    """The predicate for the latest version of a name under an address."""
    parts = [f"modelName == {_text(address.model_name)}", f"name == {_text(name)}", 'lifecycle == "active"']
    if not address.is_any:
        parts.insert(0, f"ns == {_text(address.namespace if address.namespace is not None else own)}")
    return " && ".join(parts)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
