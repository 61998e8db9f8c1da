"""Checking the configuration of a backend, whoever's it is, against the options it declares.

Owns: names and their nearest neighbours, shapes, defaults, variables that win, what looks like a secret.
Must not know: any particular backend.
Keeps: nothing unknown is ignored, and nothing that looks like a secret is ever shown.
"""

import difflib
import re
from collections.abc import Mapping
from typing import Any, assert_never
from urllib.parse import urlsplit

from mire.errors import ConfigError, shown
from mire.model.backend import Choice, File, Flag, Number, Option, Schema, Shape, Text, Url
from mire.plan.path import expand_path
from mire.wire.repo import CORE_KEYS

_UNUSABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")
_USERINFO = re.compile(r"[^/?#]*//[^/?#]*@")
_VISIBLE = re.compile(r"[!-~]+")
_DIGITS = re.compile(r"[0-9]{1,15}")
_SECRET = re.compile(
    r"secret|passw|token|credential|access.?key|private.?key|api.?key|service.?account|^key(.?id)?$", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Whether a member with this name is likely to hold a secret."""
    return _SECRET.search(name) is not None


def check_name(name: str, schema: Schema, *, what: str) -> Option:
    """The option with this name; an unknown one is refused with the nearest, a secret one without its value."""
    known = {option.name: option for option in schema.options}
    if name in known:
        return known[name]
    if is_secret(name):
        raise ConfigError(
            f"{what}: {shown(name)} does not belong into settings: credentials come from {schema.credentials};"
            " remove it there"
        )
    lowered = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), lowered, n=1)
    advice = f"did you mean '{lowered[near[0]]}'?" if near else f"use some of {', '.join(known)}"
    raise ConfigError(f"{what}: {schema.type} has no {shown(name)}: {advice}")


def check_config(
    config: Mapping[str, Any], schema: Schema, *, repo_dir: str, environ: Mapping[str, str], what: str
) -> dict[str, Any]:
    """The configuration with every member checked, its defaults filled in and the environment's word heard."""
    known = {option.name for option in schema.options}
    for name in config:
        if name in known or name not in CORE_KEYS:
            check_name(str(name), schema, what=what)
    checked: dict[str, Any] = {}
    for option in schema.options:
        value = config.get(option.name)
        if value is not None:
            value = _checked(value, option, what)
        elif option.is_required:
            raise ConfigError(f"{what}: {schema.type} needs '{option.name}': {option.meaning}")
        else:
            value = option.default
        if isinstance(option.shape, File) and value is not None:
            value = expand_path(str(value), repo_dir=repo_dir, environ=environ, what=f"{what}: '{option.name}'")
        spoken = environ.get(option.variable, "") if option.variable else ""
        checked[option.name] = _override(spoken.strip(), option.shape, value)
    return checked


def _override(spoken: str, shape: Shape, value: object) -> object:
    # A variable that cannot be used is ignored, as in the reference: failing would break a shared environment.
    if isinstance(shape, Number) and _DIGITS.fullmatch(spoken) and shape.least <= int(spoken) <= shape.most:
        return int(spoken)
    return value


def _checked(value: object, option: Option, what: str) -> str | int | bool:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # The order matters: true is a number to Python, and must not be one here.
    if isinstance(value, bool | int | str) and _fits(value, option.shape):
        return value
    if isinstance(option.shape, Url) and isinstance(value, str) and _USERINFO.match(value):
        raise ConfigError(f"{what}: '{option.name}' holds a user name or password: remove it from the address")
    told = "has a value that does not fit" if is_secret(option.name) or is_secret(str(value)) else f"is {shown(value)}"
    raise ConfigError(f"{what}: '{option.name}' {told}: give {_wanted(option.shape)}")


def _fits(value: bool | int | str, shape: Shape) -> bool:  # noqa: FBT001 - a value of a document, not a switch
    match shape:
        case Flag():
            return isinstance(value, bool)
        case Number(least=least, most=most):
            return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        case Choice(words=words):
            return value in words
        case Url():
            return isinstance(value, str) and _is_url(value)
        case File():
            return isinstance(value, str) and bool(value) and not _UNUSABLE.search(value)
        case Text():
            return isinstance(value, str) and not _UNUSABLE.search(value)
        case _:
            assert_never(shape)


def _wanted(shape: Shape) -> str:
    match shape:
        case Flag():
            return "true or false"
        case Number(least=least, most=most):
            return f"a whole number from {least} to {most}"
        case Choice(words=words):
            return f"one of {', '.join(words)}"
        case Url():
            return "an address such as https://storage.example.com"
        case File():
            return "a path"
        case Text():
            return "text without control characters"
        case _:
            assert_never(shape)


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        has_place = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_plain = not parts.query and not parts.fragment and not _USERINFO.match(value)
    return has_place and is_plain and parts.scheme in ("http", "https") and _VISIBLE.fullmatch(value) is not None


def text_of(text: str, shape: Shape) -> str | int | bool:
    """A value from the text it has in an address; what does not fit is left as it is, to be refused with the rest."""
    if isinstance(shape, Flag) and text in ("true", "false"):
        return text == "true"
    if isinstance(shape, Number) and _DIGITS.fullmatch(text):
        return int(text)
    return text


def json_schema_of(schema: Schema) -> dict[str, Any]:
    """The options as a JSON Schema, for programs that write configurations."""
    return {
        "type": "object",
        "properties": {option.name: _json_schema_of(option) for option in schema.options},
        "required": [option.name for option in schema.options if option.is_required],
        "additionalProperties": False,
    }


def _json_schema_of(option: Option) -> dict[str, Any]:
    match option.shape:
        case Flag():
            shape: dict[str, Any] = {"type": "boolean"}
        case Number(least=least, most=most):
            shape = {"type": "integer", "minimum": least, "maximum": most}
        case Choice(words=words):
            shape = {"type": "string", "enum": list(words)}
        case Url():
            shape = {"type": "string", "format": "uri"}
        case Text() | File():
            shape = {"type": "string"}
        case _:
            assert_never(option.shape)
    default = {} if option.default is None else {"default": option.default}
    return {**shape, "description": option.meaning, **default}
