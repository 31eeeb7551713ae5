"""Several shapers as one: what the parts become, where it is defined, what does not go together, and that it travels."""

import json
import pickle

import gymnasium as gym
import numpy as np
import pytest
from group_factory import make_groups

import setpo_envs  # noqa: F401 (registers the environments)
from setpo_envs import verify_groups
from setpo_envs.checks import check_shaper
from setpo_envs.datasets import Problem
from setpo_envs.shapers import Composed, SetPO, ShaperWrapper, Shaping, apply_shaper, make_shaper, resolve_shaper
from setpo_verifiers import VerifierPool

FIELDS = ("credits", "shaped_rewards", "weights", "defined", "diversity")
KEYS = [["a", "a", "b", "c", None], ["a", "a", "a", "a", "a"]]
CORRECT = [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]


def shaped(shaper, seed=0):
    groups = make_groups([["one", "one", "two", "three", ""], ["x"] * 5], KEYS, CORRECT)
    apply_shaper(groups, resolve_shaper(shaper), np.random.default_rng(seed))
    return groups


def test_rewards_add_their_changes_weights_multiply_and_credits_add():
    parts = ["darling", "setpo", "overlong", lambda groups, rng: Shaping(weights=1.0 + groups.rewards)]
    parts.append(lambda groups, rng: Shaping(weights=np.full(groups.rewards.shape, 3.0), credits=groups.rewards))
    parts.append((lambda groups, rng: Shaping(credits=groups.rewards, shaped_rewards=groups.rewards - 0.25), {"coefficient": 0.5}))
    darling, setpo, _, _, _, _ = (shaped(part if not isinstance(part, tuple) else part[0]) for part in parts)
    both = shaped(parts)
    rewards = both.rewards
    np.testing.assert_allclose(both.shaped_rewards, darling.shaped_rewards - 0.25)
    np.testing.assert_allclose(both.weights, 3 * (1 + rewards))
    np.testing.assert_allclose(both.credits, setpo.credits + rewards + 0.5 * rewards)
    np.testing.assert_array_equal(both.diversity, setpo.diversity)
    mixed = shaped(list(reversed(parts)))
    for name in FIELDS:  # the order does not matter
        np.testing.assert_allclose(getattr(mixed, name), getattr(both, name), atol=1e-12)


def test_one_member_is_that_member_and_each_sees_the_verified_groups():
    for name in ("setpo", "gapo", "edas", "madrl"):
        one, alone = shaped([name]), shaped(name)
        for field in FIELDS:
            np.testing.assert_allclose(getattr(one, field), getattr(alone, field), atol=1e-12)
    seen = []
    shaped(["darling", lambda groups, rng: seen.append(groups.shaped_rewards.copy()) or Shaping()])
    np.testing.assert_array_equal(seen[0], shaped("overlong").rewards)


def test_diversity_is_of_the_first_that_gives_one():
    for parts, first in ((["darling", "setpo"], "setpo"), (["vendi", "setpo"], "vendi"), (["setpo", "vendi"], "setpo")):
        np.testing.assert_array_equal(shaped(parts).diversity, shaped(first).diversity)


def test_a_group_is_neutral_where_one_member_is_undefined():
    half = shaped(["darling", ("setpo", {"members": "correct"})])
    assert half.defined.tolist() == [True, True]
    keys = [["a", "b", None, None], ["a", "a", "b", None]]
    groups = make_groups([["it is one", "it is two", "", "it is the last, one"]] * 2, keys)
    apply_shaper(groups, make_shaper(["darling", ("setpo", {"members": "correct"})]), np.random.default_rng(0))
    assert groups.defined.tolist() == [False, True]
    np.testing.assert_array_equal(groups.shaped_rewards[0], groups.rewards[0])
    assert not groups.credits[0].any() and groups.credits[1].any() and (groups.shaped_rewards[1] != groups.rewards[1]).any()


def test_what_is_asked_of_a_shaper_is_asked_of_the_members():
    both = make_shaper([("pkpo", {"k": 5}), "setpo"])
    assert both.min_group_size == 5 and both.base_advantage is None and both.credit_coefficient == 1.0
    assert make_shaper(["darling", "setpo"]).base_advantage == "dr_grpo"
    assert not hasattr(make_shaper(["setpo", "overlong"]), "base_advantage")
    assert make_shaper(["setpo", "shuffled"]).draws and not make_shaper(["setpo"]).draws
    with pytest.raises(ValueError, match="at least 5 completions, got group_size=4"):
        resolve_shaper([("pkpo", {"k": 5}), "setpo"], None, 4)


def test_a_credit_beside_one_that_replaces_the_base_advantage():
    both = shaped(["madrl", ("setpo", {"coefficient": 0.5})])
    np.testing.assert_array_equal(both.weights, 0)
    np.testing.assert_allclose(both.credits, shaped("madrl").credits + 0.5 * shaped("setpo").credits)


@pytest.mark.parametrize(
    "shaper, message",
    [
        ([], "at least one shaper, got an empty list"),
        (["madrl", "pkpo"], r"one base advantage, got: MaDRL\(.*replaces it; PKPO\(.*replaces it"),
        (["darling", "dra_grpo"], r"Darling\(.*trains with dr_grpo; DRAGRPO\(.*trains with grpo"),
        (["madrl", "gapo"], "MaDRL.*replaces it; GAPO.* trains with grpo"),
        (["setpo", "nope"], "unknown shaper 'nope'"),
        (["setpo", ["darling", {"floor": 1}]], "unknown option 'floor' of shaper 'darling'"),
        ([["setpo", {"coefficient": "2"}]], "coefficient as a finite number, got '2'"),
        ([["setpo", {"coefficient": float("nan")}]], "coefficient as a finite number, got nan"),
        ([["darling", "setpo"]], r"pairs \(name, options\) and of shapers, got \['darling', 'setpo'\] in it"),
        (["setpo", None], "got None in it"),
        (["setpo", 3], "expected shaper to be the name"),
    ],
)
def test_what_does_not_go_together_is_an_error_when_it_is_made(shaper, message):
    with pytest.raises(ValueError, match=message):
        make_shaper(shaper)


def test_options_go_beside_each_name():
    with pytest.raises(ValueError, match="expected options beside each name"):
        resolve_shaper(["setpo"], {"scale": "raw"})
    with pytest.raises(ValueError, match="expected options beside each name"):
        make_shaper(["setpo"], scale="raw")


def test_what_would_have_no_effect_is_an_error_when_it_is_applied():
    with pytest.raises(ValueError, match=r"expected credits beside coefficient=2, which weighs them, got none from Darling"):
        shaped([("darling", {"coefficient": 2})])
    with pytest.raises(ValueError, match="Overlong.* shapes rewards or weights, which has no effect"):
        shaped(["madrl", "overlong"])


ID, ACTION = "setpo/Countdown-v0", ("<answer>1+2</answer>", "<answer>2*3</answer>", "", "<answer>1+2</answer>", "no idea")


@pytest.mark.parametrize(
    "shaper",
    [
        ["darling", "setpo"],
        [["setpo", {"scale": "zscore", "coefficient": 0.5}], ["ucb_exploration", {"variant": "ucb"}], "gapo"],
        ["setpo", "shuffled"],
        ["madrl", "setpo"],
        ["edas", "rarity_aware", "gapo"],
    ],
)
def test_compositions_keep_the_contract(shaper):
    check_shaper(shaper)


def test_it_is_taken_wherever_a_shaper_is():
    composed = make_shaper(["darling", ("setpo", {"scale": "zscore"})])
    names = ["darling", ["setpo", {"scale": "zscore"}]]
    assert isinstance(composed, Composed) and composed == resolve_shaper(names) == resolve_shaper(composed)
    problem = Problem("p", "countdown", "12=3>", {"numbers": [1, 2], "target": 3})
    expected = verify_groups([problem], [ACTION], shaper=composed)
    results = [verify_groups([problem], [ACTION], shaper=names)]
    with VerifierPool(1) as pool:
        results.append(verify_groups([problem], [ACTION], shaper=tuple(names), pool=pool))
    for groups in results:
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(groups, field), getattr(expected, field))
    assert expected.credits.any() and (expected.shaped_rewards != expected.rewards).any()

    env = gym.make(ID, group_size=5, shaper=names)
    wrapped = ShaperWrapper(gym.make(ID, group_size=5, shaper=None), names)
    twins = [gym.make(gym.envs.registration.EnvSpec.from_json(json.dumps(json.loads(each.spec.to_json())))) for each in (env, wrapped)]
    infos = []
    for each in (env, wrapped, *twins, pickle.loads(pickle.dumps(env))):
        each.reset(seed=1)
        infos.append(each.step(ACTION)[4]["group"])
    for info in infos:
        for field in FIELDS:
            np.testing.assert_array_equal(info[field], infos[0][field])


def test_controls_go_around_it():
    for control in ("shuffled", "random_partition", "mean_matched"):
        made = make_shaper(control, of=["darling", "setpo"])
        assert made.min_group_size == 3 and made.base_advantage == "dr_grpo"
        check_shaper(control, {"of": ["darling", "setpo"]})
    both = shaped(make_shaper("overlong", of=["darling", "setpo"]))
    np.testing.assert_allclose(both.shaped_rewards, shaped("darling").shaped_rewards)  # short texts: no punishment
    np.testing.assert_allclose(both.credits, shaped("setpo").credits)
    with pytest.raises(ValueError, match="unknown shaper 'nope'"):
        make_shaper("shuffled", of=["setpo", "nope"])


@pytest.mark.parametrize("shaper", [["setpo", ["ucb_exploration", {"variant": "ucb"}]]])
@pytest.mark.parametrize("around", [None, "mean_matched", "overlong"])
def test_memory_is_kept_and_goes_on_from_its_state(shaper, around):
    """Also by what is put around a shaper that remembers: asked twice, it says what the shaper itself says."""
    made, again = (make_shaper(shaper) if around is None else make_shaper(around, of=shaper) for _ in range(2))
    first, second = shaped(made).credits, shaped(made).credits
    assert (first != second).any()
    third = shaped(made).credits
    assert not hasattr(make_shaper("mean_matched"), "state") and not hasattr(make_shaper(["setpo"]), "state")
    shaped(again)
    again.state = json.loads(json.dumps(made.state))
    made_again, again_again = shaped(made).credits, shaped(again).credits
    np.testing.assert_array_equal(made_again, again_again)
    assert (made_again != third).any()
    if around is None:
        with pytest.raises(ValueError, match="expected a list of 2 states"):
            again.state = [None]


def test_objects_are_members_too():
    both = shaped([SetPO(kernel="equality_key"), ("setpo", {"coefficient": -1, "kernel": "equality_key"})])
    np.testing.assert_allclose(both.credits, 0, atol=1e-12)
