"""docs/cli.md and docs/errors.md are what the code says, and no command goes without a word."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from mire import errors

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """The script that writes the generated documents."""
    spec = importlib.util.spec_from_file_location("mire_docs_script", ROOT / "scripts/docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["docs/cli.md", "docs/errors.md"])
def test_generated_document_is_current(docs: ModuleType, name: str) -> None:
    """A generated document equals what its source gives now; `make docs` writes it."""
    assert (ROOT / name).read_text(encoding="utf-8") == docs.pages()[name], f"{name} is out of date: run 'make docs'"


def test_every_command_is_shown(docs: ModuleType) -> None:
    """Every command is used or explained in the README or a guide."""
    documents = [ROOT / "README.md", *(ROOT / "docs/guide").glob("*.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in documents)
    words = re.sub(r"--repo \w+ |--json ", "", text)
    missing = [path for path, _ in docs.commands() if f"{path} " not in words and f"{path}\n" not in words]
    assert missing == []


def test_every_option_is_listed(docs: ModuleType) -> None:
    """The command line page has every option of every command."""
    page = docs.cli_page()
    for path, command in docs.commands():
        for parameter in command.params:
            for spelling in parameter.opts if parameter.param_type_name == "option" else []:
                assert spelling in page, f"{path}: {spelling}"


def test_every_error_is_listed(docs: ModuleType) -> None:
    """The errors page has every error class with its exit code."""
    page = docs.errors_page()
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert classes
    for error in classes:
        assert any(f"`{error.__name__}`" in line and f"| {error.exit_code} |" in line for line in page.splitlines())
