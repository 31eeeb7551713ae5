"""DIVER: textual and equational diversity by hand and as released, and the bonus on the reward."""

import numpy as np
import pytest
from group_factory import make_groups

from setpo_envs.embedders import formulas
from setpo_envs.shapers import apply_shaper, equational_diversity, make_shaper, textual_diversity
from setpo_envs.shapers.textual import BLEU_WEIGHTS, bleu_matrix


def bonus(texts, correct, **options):
    groups = make_groups([texts], correct_NG=[correct])
    apply_shaper(groups, make_shaper("diver", **options), np.random.default_rng(0))
    return groups.shaped_rewards[0] - groups.rewards[0]


def test_bleu_by_hand():
    long, short = "a b c d e f", "a b c d e g"  # common n-grams: 5 of 6, 4 of 5, 3 of 4, 2 of 3, 1 of 2
    expected = np.prod([(5 / 6) ** 0.02, (4 / 5) ** 0.1, (3 / 4) ** 0.15, (2 / 3) ** 0.25, (1 / 2) ** 0.38])
    np.testing.assert_allclose(bleu_matrix([long, short]), [[1, expected], [expected, 1]])
    clipped = bleu_matrix(["a a a b", "a c"], weights=[1])  # one of the three a counts: 1/4; brevity 1 and exp(1 - 4/2)
    np.testing.assert_allclose(clipped, [[1, 1 / 4], [np.exp(-1) / 2, 1]])
    assert np.sum(BLEU_WEIGHTS) == pytest.approx(0.9)


def test_textual_diversity_of_equal_short_and_empty_texts():
    same = "one two three four five"
    np.testing.assert_allclose(textual_diversity([same, same, same]), 0, atol=1e-12)
    np.testing.assert_allclose(textual_diversity([same, same, ""]), [0.5, 0.5, 1])
    np.testing.assert_allclose(textual_diversity(["1+2", "1+2"]), 1)  # shorter than a 5-gram: nothing in common
    assert textual_diversity([same]).tolist() == [1] and textual_diversity([""] * 3).tolist() == [1] * 3
    np.testing.assert_allclose(textual_diversity(["x " * 500 + "a b c d e", "x " * 500 + "f g h i j"]), 0, atol=1e-12)  # cut at 1000


def test_textual_diversity_takes_both_directions():
    longer = np.prod([(5 / 6) ** 0.02, (4 / 5) ** 0.1, (3 / 4) ** 0.15, (2 / 3) ** 0.25, (1 / 2) ** 0.38])
    shorter = np.exp(1 - 6 / 5)  # every n-gram of the shorter text is in the longer one
    expected = 1 - (longer + shorter) / 2
    np.testing.assert_allclose(textual_diversity(["a b c d e f", "a b c d e"]), expected)
    np.testing.assert_allclose(textual_diversity(["a b c d e f", "a b c d e", "z"]), [(1 + expected) / 2] * 2 + [1])


def test_formulas_and_equational_diversity():
    assert formulas(r"so \[a+b\] and \(c\) give $d$ or $$e$$, 3$") == {"a+b", "c", "d", "e"}
    assert formulas(r"\[a]b\] \(f(x)\) \[open $odd") == set()
    texts = [r"$x$ then $y$", r"$x$ twice $x$", "none", r"\(z\)"]
    assert equational_diversity(texts).tolist() == [0.5, 0, 0, 1]


def test_open_formulas_cost_linear_time():
    for text in (r"\[" * 400_000, r"\(" * 400_000 + ")", "$" * 400_001, r"\[]" * 200_000):
        assert len(formulas(text)) <= 1  # minutes if each opening were looked at against the whole rest


def test_scores_equal_the_released_code(oracle):
    lines = 0
    for line in oracle("diver"):
        texts, out = line["in"]["texts"], line["out"]
        np.testing.assert_allclose(1 - textual_diversity(texts), out["belu_avg_similarity"], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(equational_diversity(texts), out["equation_unique_share"], rtol=1e-12)
        assert [len(formulas(text[:1000])) for text in texts] == out["n_formulas"]
        lines += 1
    assert lines == 300


def test_bonus_equals_the_released_code(oracle):
    lines = shaped = 0
    for line in oracle("diver"):
        given, out = line["in"], line["out"]
        if given["global_steps"] >= 100:  # there the code gives none: a schedule of the trainer's
            continue
        texts, right = given["texts"], given["rewards"]
        textual, equational = given["neg_rs_scale"], given["pos_rs_scale"]  # what these options of the code scale
        both = bonus(texts, right, textual=textual, equational=equational)
        np.testing.assert_allclose(both, out["div_reward_belu_equ_mix"], rtol=1e-8, atol=1e-12)
        alone = bonus(texts, right, textual=textual, equational=0, cap_textual=1, only="solved_groups")
        np.testing.assert_allclose(alone, out["div_reward_belu"], rtol=1e-8, atol=1e-12)
        rewards = np.array(right) + both
        if rewards.std() > 1e-3:
            advantages = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-6)
            np.testing.assert_allclose(advantages, out["adv_std_belu_equ_mix"], rtol=1e-4, atol=1e-6)
            shaped += 1
        lines += 1
    assert lines == 220 and shaped > 100


def test_wrong_completions_and_all_wrong_groups_get_no_bonus():
    texts = ["$a$ one two three four five", "$b$ six seven eight nine ten", "$c$ more words of another kind"]
    assert bonus(texts, [0, 0, 0]).tolist() == [0, 0, 0]
    np.testing.assert_allclose(bonus(texts, [1, 0, 1]), [0.665, 0, 0.665])  # (.91 + .42) / 2
    assert bonus(texts, [1, 0, 1], only="solved_groups").tolist() == [0, 0, 0]


def test_options_are_checked():
    with pytest.raises(ValueError, match="expected textual to be a number >= 0, got -1"):
        make_shaper("diver", textual=-1)
    with pytest.raises(ValueError, match="unknown only 'right': choose one of correct, solved_groups"):
        make_shaper("diver", only="right")
