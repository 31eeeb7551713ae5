"""What the wheel holds, what it asks for, and that the documents name commands and bounds that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"setpo_envs": "setpo_envs", "verifiers": "setpo_verifiers", "agents": "setpo_agents"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built offline from a clean copy of the files that go into it."""
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    pip_wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*pip_wheel, "--wheel-dir", str(dist), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = dist.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def requirements(metadata: Message) -> list[Requirement]:
    return [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]


def pins(path: str) -> dict[str, Version]:
    """Exact pins of a constraints file, by lower-case name."""
    lines = [line.split("#")[0].strip() for line in (ROOT / path).read_text().splitlines()]
    return {name.lower(): Version(version) for name, version in (line.split("==") for line in lines if line)}


def test_top_level_names_collide_with_nobody(names: set[str]) -> None:
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == set(FOLDERS.values())


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_of_the_folders_is_in_the_wheel(names: set[str], folder: str) -> None:
    files = {path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    expected = {f"{FOLDERS[folder]}/{path.as_posix()}" for path in files}
    assert f"{FOLDERS[folder]}/py.typed" in expected
    assert expected - names == set(), "list the package under [tool.setuptools] packages, or the file under package-data, in pyproject.toml"


def test_page_template_licence_and_command(wheel: Path, names: set[str]) -> None:
    assert any(re.fullmatch(r"setpo_agents/\w+\.html", name) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in names if name.endswith("entry_points.txt")]
        entry_points = ConfigParser()
        entry_points.read_string(archive.read(name).decode())
    assert entry_points["console_scripts"]["setpo"] == "setpo_agents.cli:main"


def test_core_is_light(metadata: Message) -> None:
    core = {requirement.name for requirement in requirements(metadata) if requirement.marker is None}
    assert core == {"numpy", "gymnasium", "tqdm"}
    assert metadata["Requires-Python"] == ">=3.10"


@pytest.mark.parametrize("package", ["setpo_agents", "setpo_agents.cli"])
def test_agents_import_without_torch(package: str) -> None:
    program = f"import sys, {package}; print(*sorted({{'torch', 'transformers', 'datasets', 'sympy', 'matplotlib'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_lowest_pins_are_the_lower_bounds(metadata: Message) -> None:
    lowest = pins("constraints/lowest.txt")
    bounds = {r.name: Version(s.version) for r in requirements(metadata) for s in r.specifier if s.operator == ">="}
    assert {name: lowest[name] for name in bounds} == bounds


def test_pinned_set_satisfies_what_it_installs(metadata: Message) -> None:
    pinned = pins("constraints.txt")
    for requirement in requirements(metadata):
        marker = requirement.marker
        if requirement.name == "setpo-envs":  # an extra that contains another one
            continue
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("train", "hf", "report", "hub", "trl", "dev")):
            assert requirement.specifier.contains(pinned[requirement.name.lower()]), requirement


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_documented_commands_exist(metadata: Message, document: str) -> None:
    text = (ROOT / document).read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"(?:^\s*|`)make ([a-z][a-z-]*)", text, flags=re.MULTILINE))
    assert "test" in commands
    assert commands <= targets
    extras = {extra.strip() for group in re.findall(r"\.\[([a-z, ]+)\]", text) for extra in group.split(",")}
    assert extras <= set(metadata.get_all("Provides-Extra", []))
