"""Loggers: every number of a step under one name, and a clear word where a package is missing."""

import sys
from types import SimpleNamespace

import pytest

from setpo_agents.loggers import make_loggers, scalars

METRICS = {"step": 3, "reward": 0.5, "seconds": {"update": 0.25, "parts": {"a": 1}}, "label": "no number", "none": None}
FLAT = {"step": 3.0, "reward": 0.5, "seconds/update": 0.25, "seconds/parts/a": 1.0}


def test_nested_numbers_have_one_name_each():
    assert dict(scalars(METRICS)) == FLAT


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb")])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{name}: pip install 'setpo-envs\[loggers\]'"):
        make_loggers([name], tmp_path, {})


def test_an_unknown_logger_is_refused(tmp_path):
    with pytest.raises(ValueError, match="tensorboard, wandb, got 'paper'"):
        make_loggers(["paper"], tmp_path, {})


def test_numbers_reach_both(tmp_path, monkeypatch):
    written, logged, started = [], [], []
    writer = SimpleNamespace(add_scalar=lambda *row: written.append(row), close=lambda: written.append("closed"))
    run = SimpleNamespace(log=lambda row, step: logged.append((step, row)), finish=lambda: logged.append("closed"))
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=lambda folder: writer))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **options: started.append(options) or run))
    for logger in make_loggers(["tensorboard", "wandb"], tmp_path / "run", {"seed": 1}):
        logger.log(3, METRICS)
        logger.close()
    assert written == [*((name, value, 3) for name, value in FLAT.items()), "closed"]
    assert logged == [(3, FLAT), "closed"]
    assert started == [{"project": "setpo", "id": "run", "name": "run", "config": {"seed": 1}, "resume": "allow"}]
