"""Configurations of backends: what is checked, what is suggested, what is never shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import ConfigError
from mire.model.backend import Choice, File, Flag, Number, Option, Schema, Text, Url
from mire.plan.option import check_config, check_name, is_secret, json_schema_of, text_of
from mire.wire.repo import CORE_KEYS

HIDDEN = "wJalrXUtnFEMI-K7MDENG"
SCHEMA = Schema(
    type="@acme/blob",
    title="Blob",
    description="a blob",
    credentials="the blob chain",
    options=(
        Option(name="container", is_required=True, meaning="where"),
        Option(name="endpoint", shape=Url(), meaning="which server"),
        Option(name="caFile", shape=File(), meaning="whom to trust"),
        Option(name="fast", shape=Flag(), default=False, meaning="hurry"),
        Option(name="lanes", shape=Number(least=1, most=9), default=3, variable="LANES", meaning="how many"),
        Option(name="mode", shape=Choice(words=("one", "two")), meaning="which way"),
        Option(name="apiToken", shape=Number(least=1, most=9), meaning="a secret of its own"),
    ),
)


def check(environ: dict[str, str] | None = None, /, **config: Any) -> dict[str, Any]:
    """A configuration of the schema above, checked."""
    return check_config({"container": "c", **config}, SCHEMA, repo_dir="/srv/repo", environ=environ or {}, what="here")


def test_defaults_are_filled_in() -> None:
    """What is not said has its default, or is None."""
    assert check() == {
        "container": "c",
        "endpoint": None,
        "caFile": None,
        "fast": False,
        "lanes": 3,
        "mode": None,
        "apiToken": None,
    }
    assert check(fast=None, lanes=None) == check()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("container", "a b/ü", "a b/ü"),
        ("endpoint", "http://127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("endpoint", "https://store.example.com/base/", "https://store.example.com/base/"),
        ("endpoint", "https://[::1]:9000", "https://[::1]:9000"),
        ("caFile", "/etc/ca.pem", "/etc/ca.pem"),
        ("caFile", "ca.pem", "/srv/repo/ca.pem"),
        ("caFile", "$CA/x.pem", "/ca/x.pem"),
        ("fast", True, True),
        ("lanes", 1, 1),
        ("lanes", 9.0, 9),
        ("mode", "two", "two"),
    ],
)
def test_fitting_values_are_taken(name: str, value: object, expected: object) -> None:
    """A value of the right shape is taken as it is, a path made absolute."""
    assert check({"CA": "/ca"}, **{name: value})[name] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("container", 7),
        ("container", True),
        ("container", ["c"]),
        ("container", "a\nb"),
        ("container", "\udcff"),
        ("endpoint", "store.example.com"),
        ("endpoint", "ftp://store.example.com"),
        ("endpoint", "https://"),
        ("endpoint", "https://a b"),
        ("endpoint", "https://host:port"),
        ("endpoint", "https://host:0"),
        ("endpoint", "https://host/?a=b"),
        ("endpoint", "https://host/#a"),
        ("endpoint", "https://höst"),
        ("endpoint", "https://ho\tst"),
        ("endpoint", "https://[::1"),
        ("endpoint", ""),
        ("caFile", ""),
        ("caFile", "a\0b"),
        ("fast", "true"),
        ("fast", 1),
        ("lanes", 0),
        ("lanes", 10),
        ("lanes", 1.5),
        ("lanes", "3"),
        ("lanes", True),
        ("lanes", float("inf")),
        ("mode", "three"),
        ("mode", 1),
    ],
)
def test_other_values_are_refused_in_one_line(name: str, value: object) -> None:
    """A value that does not fit is shown, with the option, where it stands and what is wanted."""
    with pytest.raises(ConfigError, match=rf"^here: '{name}' is .*: give ") as caught:
        check(**{name: value})
    assert caught.value.message.isprintable()


def test_a_missing_member_is_named() -> None:
    """What is required and not there is told with its meaning."""
    with pytest.raises(ConfigError, match="here: @acme/blob needs 'container': where"):
        check_config({}, SCHEMA, repo_dir="/", environ={}, what="here")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("contaner", "did you mean 'container'?"),
        ("Container", "did you mean 'container'?"),
        ("cafile", "did you mean 'caFile'?"),
        ("endpint", "did you mean 'endpoint'?"),
        ("zzz", "use some of container, endpoint, caFile, fast, lanes, mode, apiToken"),
    ],
)
def test_unknown_members_are_refused_with_the_nearest(name: str, hint: str) -> None:
    """A typing error is not ignored, as the reference does, but answered."""
    with pytest.raises(ConfigError) as caught:
        check(**{name: 1})
    assert caught.value.message == f"here: @acme/blob has no '{name}': {hint}"


@pytest.mark.parametrize("name", CORE_KEYS)
def test_members_of_the_reference_are_left_alone(name: str) -> None:
    """What the reference's core keeps beside the configuration may stand in it, whatever it says."""
    assert check(**{name: ["anything"]}) == check()


@pytest.mark.parametrize(
    "name",
    [
        *("accessKeyId", "secretAccessKey", "sessionToken", "key", "keyId", "password", "credentials", "apiKey"),
        *("aws_secret_access_key", "serviceAccountKey", "private_key", "TOKEN", "client-secret", "access_key"),
    ],
)
def test_secrets_are_refused_and_never_shown(name: str) -> None:
    """Credentials in settings get an answer of their own, without their value."""
    with pytest.raises(ConfigError, match="credentials come from the blob chain") as caught:
        check(**{name: HIDDEN})
    assert HIDDEN not in caught.value.message
    assert name in caught.value.message


def test_a_declared_option_with_a_secret_name_is_not_shown() -> None:
    """A backend may have its own ideas; we still do not print such values."""
    with pytest.raises(ConfigError, match="'apiToken' has a value that does not fit") as caught:
        check(apiToken=HIDDEN)
    assert HIDDEN not in caught.value.message


@pytest.mark.parametrize(
    "value", [f"https://key:{HIDDEN}@host", f"https://{HIDDEN}@host", f"//a:{HIDDEN}@b", f"https://h/?token={HIDDEN}"]
)
def test_addresses_with_secrets_are_refused_without_showing_them(value: str) -> None:
    """A password in an address is refused and stays unseen."""
    with pytest.raises(ConfigError, match="'endpoint'") as caught:
        check(endpoint=value)
    assert HIDDEN not in caught.value.message


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("5", 5), (" 9 ", 9), ("1", 1), *((bad, 4) for bad in ("", "0", "10", "-5", "5s", "1.5", "x", "٣", "9" * 5000))],
)
def test_a_usable_variable_wins_over_the_configuration(variable: str, expected: int) -> None:
    """A number within bounds in the environment wins, anything else there counts as not set."""
    assert check({"LANES": variable}, lanes=4)["lanes"] == expected


@given(st.text(max_size=12).filter(lambda name: name not in {option.name for option in SCHEMA.options}))
def test_no_unknown_name_passes(name: str) -> None:
    """Whatever the name, it is an option or one printable line."""
    with pytest.raises(ConfigError) as caught:
        check_name(name, SCHEMA, what="here")
    assert caught.value.message.isprintable()


@given(
    st.dictionaries(st.sampled_from([option.name for option in SCHEMA.options]), st.none() | st.text() | st.integers())
)
def test_what_was_checked_passes_again(config: dict[str, Any]) -> None:
    """A checked configuration is a fixed point: checking it again changes nothing."""
    try:
        once = check(**config)
    except ConfigError:
        return
    assert check(**once) == once


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("true", Flag(), True),
        ("false", Flag(), False),
        ("yes", Flag(), "yes"),
        ("25", Number(least=1, most=9), 25),
        ("-5", Number(least=1, most=9), "-5"),
        ("true", Text(), "true"),
        ("25", Text(), "25"),
    ],
)
def test_values_have_a_text_form(text: str, shape: Any, expected: object) -> None:
    """In an address a value is text; what does not fit its shape stays text, and is refused later."""
    assert text_of(text, shape) == expected


@pytest.mark.parametrize("name", ["bucket", "prefix", "region", "profile", "keyPrefix", "monkey", "keyboard"])
def test_ordinary_names_are_no_secrets(name: str) -> None:
    """The word for a secret must not swallow ordinary names."""
    assert not is_secret(name)


def test_the_schema_is_json_schema() -> None:
    """Programs get the options with types, bounds, defaults and meanings."""
    document = json_schema_of(SCHEMA)
    assert (document["required"], document["additionalProperties"]) == (["container"], False)
    assert document["properties"]["lanes"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "how many",
        "default": 3,
    }
    kinds = {name: member["type"] for name, member in document["properties"].items()}
    assert kinds == {
        "container": "string",
        "endpoint": "string",
        "caFile": "string",
        "fast": "boolean",
        "lanes": "integer",
        "mode": "string",
        "apiToken": "integer",
    }
