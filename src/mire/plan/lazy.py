"""Which files a lazy pull leaves out.

Owns: the rule of wire-format §5.5.
Must not know: whether a file is there.
"""

from typing import Final

_SEGMENTS_MIN: Final = 3


def is_left_out(rel: str) -> bool:
    """Whether a file is content: `raw` below `data`. Everything else says what there is, and always comes."""
    return rel.startswith("data/") and rel.endswith("/raw") and rel.count("/") >= _SEGMENTS_MIN - 1
