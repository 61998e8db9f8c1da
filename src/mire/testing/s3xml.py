"""The XML of S3: reading the documents of requests, writing those of replies.

Owns: namespaces, dates and escaping in documents.
Must not know: operations.
Keeps: a document that is not XML is an error of the request, not of the server.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from mire.testing.httpwire import Reply
from mire.testing.s3errors import XML_HEAD, S3Error

_NAMESPACE: Final = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'

__all__ = ["document", "element", "escape", "iso_date", "parse_xml", "tag_of", "text_of"]


def document(root: str, inner: str) -> Reply:
    """A reply with a document."""
    text = f"{XML_HEAD}<{root} {_NAMESPACE}>{inner}</{root}>"
    return Reply(200, [("Content-Type", "application/xml")], text.encode())


def element(tag: str, text: str | int) -> str:
    """One element with text."""
    return f"<{tag}>{escape(str(text))}</{tag}>"


def iso_date(seconds: float) -> str:
    """A time as documents have it: whole seconds, then three zeros."""
    return _iso_date(int(seconds))


@lru_cache(maxsize=1024)
def _iso_date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def parse_xml(data: bytes) -> ET.Element:
    """The document of a request."""
    try:
        return ET.fromstring(data)  # noqa: S314 - requests come from the test itself
    except ET.ParseError:
        raise S3Error("MalformedXML", "The XML you provided was not well-formed") from None


def tag_of(node: ET.Element) -> str:
    """The name of an element, without its namespace."""
    return node.tag.rpartition("}")[2]


def text_of(node: ET.Element, tag: str) -> str | None:
    """The text of a child, or None."""
    return next((child.text or "" for child in node if tag_of(child) == tag), None)
