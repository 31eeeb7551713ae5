"""Checkpoints: what is written comes back, whole or not at all."""

import pytest
import torch

from setpo_agents import checkpoint


def state():
    shared = torch.arange(6.0).view(2, 3)
    return {
        "policy": {"embed.weight": shared, "head.weight": shared, "norm": torch.tensor([1.5], dtype=torch.bfloat16)},
        "optimizer": {"state": {0: {"step": torch.tensor(3.0), "exp_avg": shared.t()}, 12: {}}, "param_groups": [{"betas": [0.9, 0.95]}]},
        "generators": [torch.Generator().get_state()],
        "rngs": {"7": 2**127 + 1},
        "empty": torch.zeros(0, 3),
        "nothing": None,
    }


def assert_equal(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_equal(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("name", ["c.safetensors", "c.pt"])
def test_round_trip(tmp_path, name):
    path = tmp_path / "folder" / name
    checkpoint.save(path, state())
    assert_equal(checkpoint.load(path), state())
    assert [file.name for file in path.parent.iterdir()] == [name]


def test_tied_weights_are_written_once_and_other_programs_can_read_them(tmp_path):
    from safetensors.torch import load_file

    checkpoint.save(tmp_path / "c.safetensors", state())
    tensors = load_file(tmp_path / "c.safetensors")
    assert torch.equal(tensors["policy/embed.weight"], state()["policy"]["embed.weight"]) and "policy/head.weight" not in tensors


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "c.safetensors"
    checkpoint.save(path, {"step": 1})
    with pytest.raises(TypeError):
        checkpoint.save(path, {"step": object()})
    assert checkpoint.load(path) == {"step": 1}


@pytest.mark.parametrize("name", ["c.safetensors", "c.pt"])
@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"", lambda raw: b"not a checkpoint" * 9])
def test_a_damaged_file_is_named(tmp_path, name, damage):
    path = tmp_path / name
    checkpoint.save(path, state())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=f"expected a checkpoint at .*{name}"):
        checkpoint.load(path)


def test_fingerprints_tell_weights_apart_and_know_every_dtype():
    weights = {"a": torch.ones(2, dtype=torch.bfloat16), "b": torch.tensor(1.0)}
    same = {"b": torch.tensor(1.0), "a": torch.ones(2, dtype=torch.bfloat16)}
    assert checkpoint.fingerprint(weights) == checkpoint.fingerprint(same) != checkpoint.fingerprint({**weights, "b": torch.tensor(2.0)})
