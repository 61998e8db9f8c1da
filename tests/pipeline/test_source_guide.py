"""The guide to Spark does what it shows, on the store that the demo makes."""

import importlib.util
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide/spark.md"


def generate(root: Path) -> None:
    """The store of the demo, with fewer models."""
    spec = importlib.util.spec_from_file_location("sparkdata", ROOT / "scripts/sparkdata.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.generate(str(root), models=2)


def test_the_guide_runs_and_shows_its_pictures(spark: Any, tmp_path: Path) -> None:
    """Every Python block of the guide runs, its claims hold, and every picture it shows is there."""
    text = GUIDE.read_text(encoding="utf-8")
    (tmp_path / "store").mkdir()
    generate(tmp_path / "store")
    names = {"store": str(tmp_path / "store"), "checkpoint": str(tmp_path / "checkpoint")}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102 - the guide's own lines
    pictures = re.findall(r"!\[[^\]]+\]\((.+?)\)", text)
    assert len(pictures) == 3
    assert all((GUIDE.parent / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)
