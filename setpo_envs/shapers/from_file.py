"""Shapers from a Python file that belongs to no package."""

from __future__ import annotations

import hashlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from . import base

_LOADED: dict[Path, tuple[bytes, tuple[str, ...]]] = {}  # what was run, and the names it registered


def load_shaper_file(path: str | Path) -> tuple[str, ...]:
    """Run a ``.py`` file that registers shapers with ``@register``; their names, in the order in which it registers them.

    A process that is started anew (spawned workers) calls it again with the same path: the file runs once a process, or again after it
    has changed, and its module has the same name everywhere, so that shapers of it can be pickled from one process to another. If it
    fails, the registry is what it was before. The folder of the file is not put on the search path of modules.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no ``.py`` file, raises an exception, takes the name of another shaper, or registers none.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"expected a Python file that registers shapers, found no file {path}")
    if path.suffix != ".py":
        raise ValueError(f"expected a file that ends in .py, got {path}")
    source = path.read_bytes()
    loaded, names = _LOADED.get(path, (None, ()))
    if loaded == source:
        return names
    before = dict(base._SHAPERS)
    module = ModuleType(f"setpo_shaper_file_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}")
    module.__file__ = str(path)
    former = sys.modules.get(module.__name__)
    try:
        for name in names:
            if before[name].__module__ == module.__name__:  # a changed file starts from nothing; what it imports is not imported again
                del base._SHAPERS[name]
        others = dict(base._SHAPERS)
        sys.modules[module.__name__] = module  # dataclasses and pickle look there
        _run(source, module)
        names = tuple(name for name in base._SHAPERS if name not in others or name in names)
        if not names:
            raise ValueError(f'{path} registers no shaper: put @register("name") of setpo_envs.shapers above its class or function')
    except BaseException:
        base._SHAPERS.clear()
        base._SHAPERS.update(before)
        del sys.modules[module.__name__]
        if former is not None:
            sys.modules[module.__name__] = former
        raise
    _LOADED[path] = source, names
    return names


def _run(source: bytes, module: ModuleType) -> None:
    path = module.__file__ or ""
    try:
        exec(compile(source, path, "exec"), module.__dict__)  # not by importlib, whose cached bytecode tells a change by the second
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f"{path}, line {lines[-1]}" if lines else path
        raise ValueError(f"{where}: expected a file that can be imported, got {type(error).__name__}: {error}") from error
