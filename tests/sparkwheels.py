"""Python environments of workers: with the wheel of this checkout, of another release, with another Python, or less.

They share the packages of others with the environment of the tests, and nothing of the checkout: what is shared is a
path among others, so that the link to our sources in it does not count.
"""

import glob
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OTHER = "9.9.9"
"""A release that this one is not."""


@pytest.fixture(scope="session")
def wheel_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel of this checkout, and does not see the checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    return environment(directory / "env", wheel=built_wheel(ROOT, directory))


def other_python(directory: Path) -> Path:
    """The Python of an environment that has the wheel of another release."""
    sources = directory / "sources"
    sources.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    shutil.copytree(ROOT / "src", sources / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name, start in (("pyproject.toml", "version = "), ("src/mire/model/release.py", "VERSION: Final = ")):
        lines = (sources / name).read_text().splitlines()
        said = [f'{start}"{OTHER}"' if line.startswith(start) else line for line in lines]
        assert said != lines
        (sources / name).write_text("\n".join(said) + "\n")
    return environment(directory / "env", wheel=built_wheel(sources, directory))


def other_obstore(directory: Path, wheel_python: Path) -> Path:
    """The Python of an environment that has the wheel, and another release of the package that opens stores."""
    made = environment(directory)
    (own,), (wheel,) = ((each.parents[1] / "lib").glob("python*/site-packages") for each in (made, wheel_python))
    with (own / "others.pth").open("a") as file:
        file.write(f"{wheel}\n")
    (own / "obstore-other.dist-info").mkdir()
    (own / "obstore-other.dist-info/METADATA").write_text(f"Name: obstore\nVersion: {OTHER}\n")
    return made


def newer_python(directory: Path) -> Path | None:
    """An environment of another Python that has Spark's Python part; None where there is no other Python."""
    for minor in range(12, 16):
        for python in (shutil.which(f"python3.{minor}"), *_pyenv(minor)):
            if python is None or sys.version_info.minor == minor or not _runs(python):
                continue
            # Only what is plain Python: nothing else of this environment can be imported there.
            plain = directory / "plain"
            plain.mkdir(parents=True)
            for name in ("pyspark", "py4j"):
                (plain / name).symlink_to(_packages() / name)
            return environment(directory / "env", python=python, packages=plain)
    return None


def built_wheel(sources: Path, directory: Path) -> Path:
    """The wheel of a checkout."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(build, cwd=sources, capture_output=True, check=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def environment(
    directory: Path, *, python: str = sys.executable, wheel: Path | None = None, packages: Path | None = None
) -> Path:
    """A virtual environment with the packages of others, and a wheel; its Python."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(directory)], check=True)
    (own,) = (directory / "lib").glob("python*/site-packages")
    (own / "others.pth").write_text(f"{packages or _packages()}\n")
    made = directory / "bin/python"
    if wheel is not None:
        pip = [sys.executable, "-m", "pip", "--python", str(made), "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    return made


def _packages() -> Path:
    (found,) = (Path(each) for each in site.getsitepackages() if Path(each, "pyspark").is_dir())
    return found


def _pyenv(minor: int) -> list[str]:
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    return sorted(glob.glob(f"{root}/versions/3.{minor}.*/bin/python3.{minor}"))


def _runs(python: str) -> bool:
    """Whether a Python can be run and make environments; a link that only leads to one may not."""
    return subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0
