"""DARLING: golden vectors, hand-made groups, the published implementation."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from group_factory import make_groups

from setpo_agents.advantages import BASE_ADVANTAGES, grpo
from setpo_envs import Completion
from setpo_envs.shapers import apply_shaper, make_shaper
from setpo_envs.shapers.quality import Darling, darling_factors, transitive_closure, unique_ngram_fraction


def oracle(name):
    if "SETPO_TEST_DATA" not in os.environ:
        pytest.skip(f"SETPO_TEST_DATA is not set: the folder that holds oracles/{name}.jsonl")
    return list(map(json.loads, (Path(os.environ["SETPO_TEST_DATA"]) / "oracles" / f"{name}.jsonl").read_text().splitlines()))


def shaped(groups, **options):
    apply_shaper(groups, make_shaper("darling", **options), np.random.default_rng(0))
    return groups


def same(labels):
    labels = np.array(labels)
    return labels[..., :, None] == labels[..., None, :]


def test_golden():
    groups = shaped(make_groups([list("abcdef")], [[0, 0, 0, 1, 2, 3]], [[1, 1, 1, 1, 0, 0]]))
    np.testing.assert_allclose(darling_factors(same([[0, 0, 0, 1, 2, 3]])), [[0.6] * 3 + [1] * 3], atol=1e-15)
    np.testing.assert_allclose(groups.shaped_rewards, [[0.6] * 3 + [1, 0, 0]], atol=1e-15)
    advantages = BASE_ADVANTAGES[Darling.base_advantage](groups.shaped_rewards)
    np.testing.assert_allclose(advantages[0], [0.133333] * 3 + [0.533333] + [-0.466667] * 2, atol=5e-7)
    assert (groups.weights == 1).all() and not groups.credits.any()


def test_all_right_and_all_wrong_groups():
    groups = shaped(make_groups([list("abcd")] * 3, [[0, 0, 0, 1], [0, 0, 0, 0], [0, 1, None, None]], [[1] * 4, [1] * 4, [0] * 4]))
    np.testing.assert_allclose(groups.shaped_rewards, [[1 / 3] * 3 + [1], [0.1] * 4, [0] * 4], atol=1e-15)


def test_clusters_of_the_correct_members_alone():
    labels, right = [[0, 0, 1, 1, 1], [0, 1, 1, 2, 2]], [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]
    groups = shaped(make_groups([list("abcde")] * 2, labels, right), members="correct")
    np.testing.assert_allclose(groups.shaped_rewards, [[0.5, 0.5, 1, 0, 0], [0.1, 0, 0, 0, 0]], atol=1e-15)
    np.testing.assert_allclose(darling_factors(same(labels), right), [[0.5, 0.5, 1, 0.1, 0.1], [0.1] * 5], atol=1e-15)


def test_embeddings_above_the_threshold_are_joined_transitively():
    angles = [0, 20, 40, 90, 180]  # degrees: cos 20 = .94 joins the first three, cos 40 = .77 does not
    texts = [Completion(f"t{a}", embedding=np.array([np.cos(np.radians(a)), np.sin(np.radians(a))])) for a in angles]
    groups = shaped(make_groups([texts]), partition="embedding", embedder="policy", threshold=0.9)
    np.testing.assert_allclose(groups.shaped_rewards, [[0.5] * 3 + [1] * 2], atol=1e-15)
    apart = shaped(make_groups([texts]), partition="embedding", embedder="policy", threshold=0.95)
    np.testing.assert_allclose(apart.shaped_rewards, [[1] * 5], atol=1e-15)


def test_long_chains_are_one_cluster():
    chain = np.abs(np.subtract.outer(np.arange(9), np.arange(9))) <= 1
    chain[4, 5] = chain[5, 4] = False
    expected = np.kron(np.eye(2), np.ones((5, 5)))[:9, :9] > 0
    np.testing.assert_array_equal(transitive_closure(chain[None])[0], expected)


def test_unique_ngrams_by_hand():
    texts = ["a b c d e", "a b c d f", "x x x x x", "a b", ""]  # abcd is shared; xxxx is one distinct 4-gram of two
    assert unique_ngram_fraction(texts) == [0.5, 0.5, 0.5, 0.0, 0.0]
    groups = shaped(make_groups([texts], None, [[1, 0, 1, 1, 0]]), partition="ngram")
    np.testing.assert_array_equal(groups.shaped_rewards, [[0.5, 0, 0.5, 0, 0]])


def test_oracle_partition():
    lines = oracle("darling_partition")
    assert len(lines) == 300
    normalised = 0
    for line in lines:
        given, out, name = line["in"], line["out"], f"line {line['id']}"
        similar = same(given["labels"]) if line["mode"] == "labels" else np.array(given["prob_similar"]) > 0.5
        rewards = np.array(given["rewards"], float)
        cells = {i: len(cell) for cell in out["partition_cells"] for i in cell}
        linked = similar | np.eye(len(rewards), dtype=bool)
        assert transitive_closure(linked[None])[0].sum(axis=1).tolist() == [cells[i] for i in range(len(rewards))], name
        factors = {"mult": darling_factors(similar[None])[0]}
        np.testing.assert_allclose(factors["mult"], out["partition"], rtol=1e-11, err_msg=name)
        if out["partition_correct"] is not None:
            factors["mult_correct"] = darling_factors(similar[None], rewards[None] > 0)[0]
            np.testing.assert_allclose(factors["mult_correct"], out["partition_correct"], rtol=1e-11, err_msg=name)
        for key, values in factors.items():  # float32 from here on in that code
            ours = rewards * values
            np.testing.assert_allclose(ours, out[f"{key}_shaped"], rtol=1e-6, atol=1e-7, err_msg=name)
            centred = BASE_ADVANTAGES[Darling.base_advantage](ours[None])[0]
            np.testing.assert_allclose(centred, out[f"{key}_adv_nonorm"], rtol=1e-4, atol=5e-7, err_msg=name)
        if (ours := rewards * factors["mult"]).std() > 1e-3:  # below it theirs is rounding divided by eps
            np.testing.assert_allclose(grpo(ours[None])[0], out["mult_adv_norm"], rtol=1e-4, atol=1e-5, err_msg=name)
            normalised += 1
    assert normalised > 200


def test_oracle_ngrams():
    lines = oracle("darling_ngram")
    assert len(lines) == 300
    for line in lines:
        found = unique_ngram_fraction(line["in"]["texts"], line["in"]["n"])
        np.testing.assert_allclose(found, line["out"]["unique_ngram_fraction"], rtol=1e-11, err_msg=f"line {line['id']}")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"partition": "answers"}, "choose one of mode, embedding, ngram"),
        ({"members": "wrong"}, "choose one of all, correct"),
        ({"partition": "ngram", "members": "correct"}, "members='all' beside partition='ngram'"),
        ({"threshold": 1.5}, "between -1 and 1"),
        ({"embedder": "nope"}, "unknown embedder 'nope'"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        make_shaper("darling", **options)
