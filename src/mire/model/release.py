"""Which mire this is.

Owns: the version, as messages and requests show it.
Must not know: anything else.
"""

from typing import Final

VERSION: Final = "0.1.0"
