"""DAPO's soft overlong punishment."""

import numpy as np
import pytest
from group_factory import make_groups

from setpo_envs import Completion, Groups, verify_groups
from setpo_envs.datasets import Problem
from setpo_envs.shapers import apply_shaper, make_shaper

PROBLEM = Problem("p", "countdown", "1,2=3>", {"numbers": [1, 2], "target": 3})
RNG = np.random.default_rng(0)


def punished(lengths, **options):
    """Shaped minus verified rewards of completions of these lengths (L = 100, C = 40)."""
    group = [Completion("1+2", n_tokens=n) for n in lengths]
    groups = verify_groups([PROBLEM], [group], shaper=make_shaper("overlong", max_tokens=100, cache_tokens=40, **options))
    np.testing.assert_array_equal(groups.rewards, 1)
    return (groups.shaped_rewards - groups.rewards)[0]


def test_worked_example():
    lengths = [0, 59, 60, 61, 80, 99, 100, 101, 10_000]
    np.testing.assert_allclose(punished(lengths), [0, 0, 0, -1 / 40, -1 / 2, -39 / 40, -1, -1, -1], atol=1e-15)


def test_against_the_three_cases_of_the_paper():
    def literal(n, longest, cache):
        if n <= longest - cache:
            return 0.0
        return ((longest - cache) - n) / cache if n <= longest else -1.0

    np.testing.assert_allclose(punished(range(130)), [literal(n, 100, 40) for n in range(130)], atol=1e-15)


def test_beside_another_shaper_the_rest_is_that_shapers():
    texts = [[Completion(text, n_tokens=80) for text in ("1+2", "2+1", "2*1", "no idea")]] * 2
    options = {"of": "setpo", "of_kwargs": {"kernel": "equality_key", "members": "well_formed"}}
    plain = verify_groups([PROBLEM] * 2, texts, shaper=make_shaper("setpo", **options["of_kwargs"]))
    both = verify_groups([PROBLEM] * 2, texts, shaper=make_shaper("overlong", max_tokens=100, cache_tokens=40, **options))
    for name in ("rewards", "credits", "weights", "diversity", "defined"):
        np.testing.assert_array_equal(getattr(both, name), getattr(plain, name))
    np.testing.assert_array_equal(both.shaped_rewards, plain.shaped_rewards - 0.5)
    assert np.abs(plain.credits).max() > 0
    assert make_shaper("overlong", of="setpo").min_group_size == 3 and make_shaper("overlong").min_group_size == 1


def test_the_punishment_holds_where_the_other_shaper_is_undefined():
    texts = [[Completion(text, n_tokens=100) for text in ("1+2", "hm", "no idea")]]
    options = {"of": "setpo", "of_kwargs": {"members": "well_formed"}}
    assert not verify_groups([PROBLEM], texts, shaper=make_shaper("setpo", members="well_formed")).defined[0]
    groups = verify_groups([PROBLEM], texts, shaper=make_shaper("overlong", max_tokens=100, cache_tokens=40, **options))
    np.testing.assert_array_equal(groups.shaped_rewards[0], [0, -1, -1])
    assert groups.defined[0] and not groups.credits.any()


def test_token_counts_are_needed_but_for_what_was_cut_off():
    shaper = make_shaper("overlong")
    cut = make_groups([[Completion("x", truncated=True), Completion("y", n_tokens=1)]])
    apply_shaper(cut, shaper, RNG)
    np.testing.assert_array_equal(cut.shaped_rewards - cut.rewards, [[-1, 0]])
    with pytest.raises(ValueError, match=r"hand in Completion\(text, n_tokens=n\)"):
        verify_groups([PROBLEM], [["1+2"]], shaper=shaper)


def test_token_counts_are_stored_and_read_back():
    group = [Completion("1+2", n_tokens=3), Completion("1+", truncated=True, n_tokens=2), "3"]
    line = verify_groups([PROBLEM], [group]).to_json(0)
    assert line["n_tokens"] == [3, 2, None]
    back = Groups.from_json([line]).completions_NG[0]
    assert [getattr(text, "n_tokens", None) for text in back] == [3, 2, None] and back == group
    assert "n_tokens" not in verify_groups([PROBLEM], [["1+2"]]).to_json(0)
    with pytest.raises(ValueError, match="for each of 3 completions, got 3 and 2"):
        Groups.from_json([{**line, "n_tokens": [3, 2]}])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"cache_tokens": 0}, "0 < cache_tokens <= max_tokens, got 0"),
        ({"max_tokens": 5, "cache_tokens": 6}, "got 6 and 5"),
        ({"max_tokens": "5"}, "got 4096 and '5'"),
        ({"of": "sepo"}, "unknown shaper 'sepo'"),
        ({"of": "setpo", "of_kwargs": {"kernle": 1}}, "kernel"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        make_shaper("overlong", **options)
