"""Evaluation: append-only, resumable to the same samples, and its metrics are those of the stored groups."""

import json

import pytest
import torch
from tiny_run import POLICY, SETPO, dataset, make_warm_start

from setpo_agents.evaluate import CHUNK, evaluate, metrics_table
from setpo_agents.policies.base import Sampling
from setpo_agents.policies.load import load_policy
from setpo_agents.policies.tiny import TinyPolicy
from setpo_envs.shapers.base import make_shaper
from setpo_verifiers import VerifierPool, verify


@pytest.fixture(scope="module")
def policy():
    return TinyPolicy(POLICY, seed=1)


@pytest.fixture(scope="module")
def problems():
    data = dataset()
    assert len(data) > CHUNK + 5
    return data


def run(policy, problems, path, **kwargs):
    return evaluate(policy, problems, path, n=4, seed=7, indices=range(CHUNK + 5), shaper=make_shaper("setpo", **SETPO), **kwargs)


def test_lines_hold_the_whole_group(policy, problems, tmp_path):
    lines = run(policy, problems, tmp_path / "groups.jsonl")
    assert [json.loads(text) for text in (tmp_path / "groups.jsonl").read_text().splitlines()] == lines
    for i, line in enumerate(lines):
        assert (line["index"], line["problem_id"], len(line["completions"])) == (i, problems[i].problem_id, 4)
        verdicts = [verify(line["task"], text, line["gold"]) for text in line["completions"]]
        assert [verdict.reward for verdict in verdicts] == line["rewards"]
        assert [verdict.mode_key for verdict in verdicts] == line["mode_keys"]


def test_a_pool_decides_nothing(policy, problems, tmp_path):
    run(policy, problems, tmp_path / "alone.jsonl")
    with VerifierPool(1) as pool:
        run(policy, problems, tmp_path / "pool.jsonl", pool=pool)
    assert (tmp_path / "pool.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()


@pytest.mark.parametrize("keep", [0, 3, CHUNK, CHUNK + 2])
def test_stopped_anywhere_it_goes_on_to_the_same_samples(policy, problems, tmp_path, keep):
    whole = tmp_path / "whole.jsonl"
    run(policy, problems, whole)
    part = tmp_path / "part.jsonl"
    raw = whole.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(raw[:keep]) + raw[keep][:40])
    torch.manual_seed(99)  # the global stream has no say
    run(policy, problems, part)
    assert part.read_bytes() == whole.read_bytes()


def test_finished_file_is_only_read(policy, problems, tmp_path):
    lines = run(policy, problems, tmp_path / "groups.jsonl")
    before = (tmp_path / "groups.jsonl").stat().st_mtime_ns
    assert run(policy, problems, tmp_path / "groups.jsonl") == lines
    assert (tmp_path / "groups.jsonl").stat().st_mtime_ns == before


def test_another_evaluation_is_not_appended_to(policy, problems, tmp_path):
    run(policy, problems, tmp_path / "groups.jsonl")
    with pytest.raises(ValueError, match="holds another evaluation"):
        evaluate(policy, problems, tmp_path / "groups.jsonl", n=4, seed=8)


@pytest.mark.parametrize("change", ["policy", "n", "temperature", "mode", "few"])
def test_other_settings_are_refused_and_lose_nothing(policy, problems, tmp_path, change):
    path = tmp_path / "groups.jsonl"
    few = {"n": 4, "seed": 7, "indices": range(5)}
    evaluate(policy, problems, path, **few)
    before = path.read_bytes()
    changed = {"n": {"n": 8}, "temperature": {"sampling": Sampling(temperature=0.5)}, "mode": {"mode": "strict"}}.get(change, {})
    other = TinyPolicy(POLICY, seed=2) if change in ("policy", "few") else policy
    with pytest.raises(ValueError, match="holds another evaluation"):
        evaluate(other, problems, path, **{**few, **changed})
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["# notes\nmine\n", '{"a": 1}\n', "no newline", '{"task": "x"'])
def test_a_foreign_file_is_never_cut(policy, problems, tmp_path, text):
    path = tmp_path / "notes.md"
    path.write_text(text)
    if text.startswith('{"task": '):  # what a killed evaluation may leave: it goes on
        evaluate(policy, problems, path, n=4, seed=7, indices=range(2))
        return
    with pytest.raises(ValueError, match="expected results of an earlier run"):
        evaluate(policy, problems, path, n=4, seed=7)
    assert path.read_text() == text


def test_strict_mode_counts_no_bare_answer(problems, tmp_path):
    start = make_warm_start(tmp_path / "start.pt", steps=150)
    lenient, strict = (
        evaluate(load_policy(start), problems, tmp_path / f"{mode}.jsonl", n=8, seed=7, indices=range(32), mode=mode)
        for mode in ("lenient", "strict")
    )
    assert sum(sum(line["rewards"]) for line in lenient) > 0 == sum(sum(line["rewards"]) for line in strict)


def test_metrics_table_states_intervals(policy, problems, tmp_path):
    table = metrics_table(run(policy, problems, tmp_path / "groups.jsonl"))
    assert "pass@4" in table and "distinct@4" in table and "[" in table
    assert max(map(len, table.splitlines())) <= 80
