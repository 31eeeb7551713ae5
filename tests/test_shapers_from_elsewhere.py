"""Shapers that belong to no module of ours: of an installed distribution, and of a file."""

import importlib.metadata
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from group_factory import make_groups

from setpo_envs.shapers import SetPO, base, load_shaper_file, make_shaper, registry

SHAPER = '''
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpo_envs.shapers import Shaping, register


@register("tiny_rare")
@dataclass(frozen=True)
class TinyRare:
    """Credit = 1 / size of the completion's mode in its group."""

    power: float = 1.0
    min_group_size = 2

    def __call__(self, groups, rng):
        same_NGG = groups.modes[:, :, None] == groups.modes[:, None, :]
        return Shaping(credits=1 / same_NGG.sum(axis=2) ** self.power)
'''
PLAIN = SHAPER.replace('@register("tiny_rare")\n', "").replace("Shaping, register", "Shaping")
CREDITS = [0.5, 0.5, 1.0]  # of modes a, a, b


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(base, "_SHAPERS", dict(base._SHAPERS))


def credits(shaper):
    return shaper(make_groups([["x", "y", "z"]], [["a", "a", "b"]]), np.random.default_rng(0)).credits[0].tolist()


# --- installed ---


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(distribution, {shaper: "module:object"}, source of the module ``distribution``): as pip lays it out, found on sys.path."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def add(name, points, source=""):
        (site / f"{name}.py").write_text(source)
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{shaper} = {target}" for shaper, target in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[setpo_envs.shapers]", *lines]))
        importlib.invalidate_caches()

    yield add
    for path in site.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_a_distribution_that_pip_installed_is_known_by_name_and_imported_no_sooner(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "tiny_shapers.py").write_text(PLAIN)
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "tiny-shapers"\nversion = "1.0"\n'
        '[project.entry-points."setpo_envs.shapers"]\ntiny_rare = "tiny_shapers:TinyRare"\n'
        '[tool.setuptools]\npy-modules = ["tiny_shapers"]\n'
    )
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site), str(project)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    code = """
import json, sys
import gymnasium as gym
import setpo_envs
from setpo_envs.shapers import make_shaper, registry
early = "tiny_shapers" in sys.modules
env = gym.make("setpo/Countdown-v0", group_size=3, shaper="tiny_rare", shaper_kwargs={"power": 2})
assert early is False and "tiny_shapers" in sys.modules and "tiny_rare" in registry()
twin = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
for each in (env, twin):
    each.reset(seed=0)
    print(json.dumps(each.step(("<answer>1+1</answer>", "<answer>1+1</answer>", ""))[4]["group"]["credits"].tolist()))
"""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[0.25, 0.25, 1.0]] * 2


def test_built_in_shapers_need_no_look_at_what_is_installed(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", None)
    monkeypatch.setattr("setpo_envs.shapers.installed.entry_points", None)
    assert make_shaper("setpo") == SetPO()


@pytest.mark.parametrize(
    "target, source, message",
    [
        ("broken_one:Rare", "import a_library_that_is_not_here", "ModuleNotFoundError: No module named 'a_library_that_is_not_here'"),
        ("broken_one:Rare", "raise RuntimeError('at import')", "RuntimeError: at import"),
        ("broken_one:Rare", "Other = 1", "AttributeError: .*Rare"),
        ("broken_one:Rare", "Rare = 1", "expected a class or function as shaper 'rare'.*got 1"),
    ],
)
def test_a_broken_one_is_named_and_breaks_nothing_else(install, target, source, message):
    install("broken_one", {"rare": target}, source)
    install("good_one", {"tiny_rare": "good_one:TinyRare"}, PLAIN)
    with pytest.raises(ValueError, match=message) as raised:
        make_shaper("rare")
    assert "'rare' of the installed distribution broken_one" in str(raised.value)
    with pytest.warns(RuntimeWarning, match="'rare' of the installed distribution broken_one"):
        known = registry()
    assert "rare" not in known and known["setpo"] is SetPO
    assert credits(make_shaper("tiny_rare")) == CREDITS == credits(known["tiny_rare"]())
    with pytest.warns(RuntimeWarning), pytest.raises(ValueError, match="unknown shaper 'rere': choose one of .*tiny_rare"):
        make_shaper("rere")


def test_a_registered_name_is_not_taken_over(install):
    install("thief", {"setpo": "thief:TinyRare"}, PLAIN)
    with pytest.warns(RuntimeWarning, match="'setpo' of the installed distribution thief is ignored: setpo_envs.shapers.setpo has one"):
        assert registry()["setpo"] is SetPO
    assert make_shaper("setpo") == SetPO()
    install("registers_it_too", {"other": "registers_it_too:TinyRare"}, SHAPER.replace("tiny_rare", "gapo"))
    with pytest.raises(ValueError, match="installed distribution registers_it_too.*a shaper named 'gapo' is registered already"):
        make_shaper("other")


def test_two_distributions_of_one_name_are_both_named(install):
    for name in ("first", "second"):
        install(name, {"tiny_rare": f"{name}:TinyRare"}, PLAIN)
    with pytest.raises(ValueError, match="distribution first and the installed distribution second name a shaper 'tiny_rare'"):
        make_shaper("tiny_rare")
    with pytest.warns(RuntimeWarning, match="first and .*second"):
        assert "tiny_rare" not in registry()


def test_one_that_also_registers_itself_is_one_shaper(install):
    install("both_ways", {"tiny_rare": "both_ways:TinyRare"}, SHAPER)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert credits(registry()["tiny_rare"]()) == CREDITS


# --- from a file ---


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_file_registers_shapers_by_name(tmp_path):
    second = SHAPER.replace("tiny_rare", "another").replace("TinyRare", "Another")
    path = write(tmp_path / "my shapers.py", SHAPER + second.replace("from __future__ import annotations", ""))
    assert load_shaper_file(path) == ("tiny_rare", "another")
    assert credits(make_shaper("tiny_rare")) == CREDITS == credits(make_shaper("another"))
    shaper = make_shaper("tiny_rare", power=2)
    assert load_shaper_file(str(path)) == ("tiny_rare", "another")  # again: nothing happens
    assert pickle.loads(pickle.dumps(shaper)) == shaper


def test_a_changed_file_replaces_what_it_registered(tmp_path):
    path = write(tmp_path / "mine.py", SHAPER)
    load_shaper_file(path)
    write(path, SHAPER.replace("credits=1 /", "credits=2 /").replace("tiny_rare", "renamed"))
    assert load_shaper_file(path) == ("renamed",)
    assert credits(make_shaper("renamed")) == [1.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="unknown shaper 'tiny_rare'"):
        make_shaper("tiny_rare")
    write(path, "1 / 0")
    with pytest.raises(ValueError):
        load_shaper_file(path)
    assert credits(pickle.loads(pickle.dumps(make_shaper("renamed")))) == [1.0, 1.0, 2.0]  # a file that fails changes nothing


@pytest.mark.parametrize(
    "source, message",
    [
        ("x = 1\n\ndef f():\n    raise KeyError('gone')\n\nf()\n", r"mine\.py, line 4: .*got KeyError: 'gone'"),
        ("import sys\nsys.exit(3)\n", r"mine\.py, line 2: .*got SystemExit: 3"),
        ("def f(:\n", r"mine\.py: .*got SyntaxError: .*line 1"),
        ("x = 1\n", r"mine\.py registers no shaper: put @register"),
        (SHAPER.replace("tiny_rare", "setpo"), r"mine\.py, line \d+: .*a shaper named 'setpo' is registered already"),
        (SHAPER + "\nraise RuntimeError('late')", "RuntimeError: late"),
    ],
)
def test_a_bad_file_says_what_is_wrong_and_leaves_the_registry_alone(tmp_path, source, message):
    before, modules = dict(base._SHAPERS), set(sys.modules)
    with pytest.raises(ValueError, match=message):
        load_shaper_file(write(tmp_path / "mine.py", source))
    assert base._SHAPERS == before and not {name for name in set(sys.modules) - modules if "shaper_file" in name}


def test_a_missing_or_other_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="found no file .*none.py"):
        load_shaper_file(tmp_path / "none.py")
    with pytest.raises(FileNotFoundError):
        load_shaper_file(tmp_path)
    with pytest.raises(ValueError, match="ends in .py, got .*mine.txt"):
        load_shaper_file(write(tmp_path / "mine.txt", SHAPER))


def test_a_spawned_process_calls_it_again_and_takes_shapers_from_the_first(tmp_path):
    path = write(tmp_path / "mine.py", SHAPER)
    load_shaper_file(path)
    with multiprocessing.get_context("spawn").Pool(1, load_shaper_file, (path,)) as pool:
        assert pool.apply(credits, (make_shaper("tiny_rare"),)) == CREDITS
        assert pool.apply(make_shaper, ("tiny_rare",)) == make_shaper("tiny_rare")
