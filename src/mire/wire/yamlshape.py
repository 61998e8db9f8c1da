"""How deep a YAML document may be and how much its aliases may repeat, told before it is built.

Owns: the parser of events, and the limits.
Must not know: what scalars mean.
Keeps: no document, whoever wrote it, can exhaust the stack or the memory of its reader.
"""

import re
from typing import Final

import yaml

from mire.errors import FormatError, shown

__all__ = ["DEPTH_MAX", "REPEATED_MAX", "Parser", "check_shape"]

DEPTH_MAX: Final = 200
"""Deeper documents are refused before they can exhaust a parser's stack; real ones have five levels."""

REPEATED_MAX: Final = 100_000
"""How many nodes aliases may stand for: a few lines of them can otherwise mean more than fits in memory."""

# A level of nesting needs a bracket, or a place further right than the level around it: only white space and
# the indicators `-`, `?` and `:` come before that place. Each of these gives two levels at most.
_FAR_RIGHT = re.compile(rf"[ \t?:-]{{{DEPTH_MAX // 4}}}")

try:  # the C parser is about ten times faster; both give the same events
    from yaml._yaml import CParser as Parser
except ImportError:  # pragma: no cover - PyYAML built without libyaml
    from yaml.composer import Composer
    from yaml.parser import Parser as _Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class Parser(Reader, Scanner, _Parser, Composer):  # type: ignore[no-redef]
        """Events and nodes without libyaml."""

        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            _Parser.__init__(self)
            Composer.__init__(self)


def check_shape(text: str, what: str) -> None:
    """Refuse a document that is too deep or repeats itself too often; `what` names it in errors."""
    # Composing recurses in C without a limit, and aliases multiply, so both are counted on the flat event
    # stream first. Only texts that could be deep or repeat themselves pay for the second pass.
    is_flat = text.count("[") + text.count("{") < DEPTH_MAX // 4 and not _FAR_RIGHT.search(text)
    if is_flat and not ("&" in text and "*" in text):
        return
    shape = _Shape(what)
    parser = Parser(text)
    while parser.check_event():
        match parser.get_event():
            case yaml.SequenceStartEvent(anchor=anchor) | yaml.MappingStartEvent(anchor=anchor):
                shape.begin(anchor)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                shape.end()
            case yaml.ScalarEvent(anchor=anchor):
                shape.add(anchor, 0, 1)
            case yaml.AliasEvent(anchor=anchor):
                shape.repeat(anchor or "")


class _Shape:
    def __init__(self, what: str) -> None:
        self._what = what
        # Of every open collection: its anchor, the levels in it so far (itself included), the nodes so far.
        self._open: list[tuple[str | None, int, int]] = [(None, 0, 0)]
        self._anchored: dict[str, tuple[int, int]] = {}
        self._repeated = 0

    def begin(self, anchor: str | None) -> None:
        self._open.append((anchor, 1, 1))
        self._check_depth(0)

    def end(self) -> None:
        self.add(*self._open.pop())

    def add(self, anchor: str | None, levels: int, nodes: int) -> None:
        if anchor is not None:
            self._anchored[anchor] = (levels, nodes)
        around, levels_around, nodes_around = self._open[-1]
        self._open[-1] = (around, max(levels_around, levels + 1), nodes_around + nodes)

    def repeat(self, anchor: str) -> None:
        if anchor not in self._anchored:
            raise FormatError(f"{self._what} has the alias {shown(anchor)}, which stands for itself or for nothing")
        levels, nodes = self._anchored[anchor]
        self._check_depth(levels)
        self._repeated += nodes
        if self._repeated > REPEATED_MAX:
            raise FormatError(f"{self._what} has aliases that stand for more than {REPEATED_MAX} nodes")
        self.add(None, levels, nodes)

    def _check_depth(self, levels: int) -> None:
        if len(self._open) - 1 + levels > DEPTH_MAX:
            raise FormatError(f"{self._what} is nested more than {DEPTH_MAX} levels deep")
