"""The documents hold together: short README, links that lead somewhere, nothing of one machine."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_MACHINE = re.compile(r"(?<![\w.$~/-])/(?:work|root|tmp|home|Users|private|var|opt|usr)(?:/|\b)")


def slugs_of(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    text = _FENCED.sub("", document.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_is_short() -> None:
    """The README fits in 120 lines."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link names a file that exists, and a heading in it where it names one."""
    for link in _LINK.findall(_CODE.sub("", document.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in slugs_of(target), f"{link}: {target.name} has no such heading"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_no_machine(document: Path) -> None:
    """No document holds an absolute path of the machine it was written on."""
    assert _MACHINE.findall(document.read_text(encoding="utf-8")) == []


def test_machine_paths_are_recognised() -> None:
    """The check above finds what it is for, and leaves example mounts and relative paths alone."""
    assert all(map(_MACHINE.search, ["cd /work/x", "`/tmp/a`", "(/home/dana)", "/root"]))
    assert not any(map(_MACHINE.search, ["filesystem:/mnt/share", "data/tmp/x", "$HOME/work", "a /path"]))
