"""Numbers that object stores share.

Owns: how many keys a page of a listing has, how large the parts of an upload are.
Must not know: any store.
"""

from typing import Final

PAGE_KEYS: Final = 1000
"""What S3 and GCS give in one answer to a listing."""

PART_BYTES: Final = 8 << 20
"""Larger objects go up in parts of this size; 10,000 of them, the most there may be, hold 80 GB."""
