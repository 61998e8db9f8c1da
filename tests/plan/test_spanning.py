"""Addresses of models across namespaces."""

import pytest

from mire.errors import InputError
from mire.model.names import SOLO, DataName, Namespace
from mire.plan.spanning import Address, parse_address, plan_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("router", Address(namespace=None, model_name="router")),
        (":router", Address(namespace=None, model_name="router")),
        ("infra:router", Address(namespace=Namespace("infra"), model_name="router")),
        ("infra:a:b", Address(namespace=Namespace("infra"), model_name="a:b")),
        ("*:router", Address(namespace=None, model_name="router", is_any=True)),
        ("infra:@acme/net", Address(namespace=Namespace("infra"), model_name="@acme/net")),
    ],
)
def test_the_first_colon_ends_the_namespace(text: str, expected: Address) -> None:
    """An empty prefix is our own namespace."""
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", "infra:", ":", "*:", "In fra:x", "**:x", "data:x", 7, None])
def test_what_names_no_model_is_refused(text: object) -> None:
    """So is a prefix that can be no namespace."""
    with pytest.raises(InputError):
        parse_address(text)


def test_an_address_asks_for_its_own_namespace_by_name() -> None:
    """Nothing is left to which rows happen to be there; quotes in names stay text."""
    name = DataName("state")
    assert plan_address(parse_address("router"), name, SOLO).startswith('ns == "" && modelName == "router"')
    assert plan_address(parse_address("router"), name, Namespace("web")).startswith('ns == "web" && ')
    assert plan_address(parse_address("infra:router"), name, Namespace("web")).startswith('ns == "infra" && ')
    assert "ns ==" not in plan_address(parse_address("*:router"), name, SOLO)
    assert '"a\\"b"' in plan_address(parse_address('a"b'), name, SOLO)
