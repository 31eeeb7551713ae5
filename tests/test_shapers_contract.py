"""What every registered shaper keeps to, the registry, and the wrapper."""

import json
import pickle
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from group_factory import make_groups

import setpo_envs  # noqa: F401 (registers the environments)
from setpo_envs.checks import check_shaper
from setpo_envs.shapers import SetPO, ShaperWrapper, Shaping, apply_shaper, base, make_shaper, register, registry, resolve_shaper

WORKED_BEST = {"members": "well_formed", "scale": "zscore", "malformed": "min_minus_one"}
KEYS = [
    ["1+2", "1+2", "2*3", "(1+2)*3", None, None],
    [None] * 6,
    ["4", "4", "4", "4", "4", "4"],
    ["1+2", None, None, None, None, "3"],
]
CORRECT = [[1, 1, 0, 1, 0, 0], [0] * 6, [1] * 6, [0] * 6]
TEXTS = [[f"answer {key}" if key else "" for key in row] for row in KEYS]


def groups_of(rows=slice(None), columns=slice(None)):
    return make_groups(*(np.array(table, object)[rows][:, columns].tolist() for table in (TEXTS, KEYS, CORRECT)))


def shaped(shaper, groups, seed=0):
    apply_shaper(groups, shaper, np.random.default_rng(seed))
    return groups


# --- every shaper ---

VARIANTS = [
    ("setpo", WORKED_BEST),
    ("setpo", {"members": "correct", "apply_to": "correct", "g": "linear", "center": True}),
    ("setpo", {"apply_to": "mixed_groups", "scale": "g_minus_2"}),
    *(("setpo", {"embedder": name}) for name in ("tfidf", "equations", "expression", "policy")),
    *((name, {"kernel": kernel}) for name in ("setpo", "dra_grpo", "logdet", "vendi") for kernel in ("rbf", "equality_key")),
    *(("darling", options) for options in ({"partition": "ngram"}, {"partition": "embedding"}, {"members": "correct"})),
    *(("pkpo", {"variant": variant, "k": 2}) for variant in ("s", "sloo")),
    ("pkpo", {"k": 8}),
    *(("ucb_exploration", {"variant": variant}) for variant in ("ucb", "constant")),
    ("rarity_aware", {"random_partition": True}),
    ("diver", {"only": "solved_groups"}),
    ("poly_epo", {"k": 1}),
    ("shuffled", {"of": "ucb_exploration"}),
    ("mean_matched", {"of": "shuffled"}),
    ("overlong", {"of": "madrl"}),
]


@pytest.mark.parametrize("name", sorted(registry()))
def test_every_registered_shaper_passes(name):
    check_shaper(name)


@pytest.mark.parametrize("name, options", VARIANTS)
def test_so_does_every_variant(name, options):
    check_shaper(name, options)


# --- the controls ---


def test_shuffled_deals_the_same_credits_to_other_well_formed_members():
    of = shaped(SetPO(**WORKED_BEST), groups_of()).credits
    control = make_shaper("shuffled", of="setpo", of_kwargs=WORKED_BEST)
    well_formed = groups_of().well_formed
    draws = [shaped(control, groups_of(), seed).credits for seed in range(40)]
    for credits in draws:
        np.testing.assert_array_equal(credits[~well_formed], of[~well_formed])  # the same penalty
        for n in range(len(KEYS)):
            np.testing.assert_array_equal(np.sort(credits[n]), np.sort(of[n]))
    assert (of[0, 4:] == -1).all()
    dealt = np.mean([credits[0, :4] for credits in draws], axis=0)
    assert np.ptp(of[0, :4]) > 1 and np.ptp(dealt) < 0.8  # whom it pays is chance


def test_shuffled_refuses_unknown_sources_at_construction():
    with pytest.raises(ValueError, match="unknown shaper 'nope'"):
        make_shaper("shuffled", of="nope")
    with pytest.raises(ValueError, match="unknown option 'colour' of shaper 'setpo'"):
        make_shaper("shuffled", of_kwargs={"colour": "red"})
    assert make_shaper("shuffled").min_group_size == 3


def test_random_partition_keeps_sizes_and_verdicts_and_deals_members():
    of = shaped(SetPO(kernel="equality_key"), groups_of()).credits
    draws = [shaped(make_shaper("random_partition"), groups_of(), seed) for seed in range(40)]
    correct = groups_of().correct
    for n in range(len(KEYS)):
        for members in (correct[n], groups_of().well_formed[n] & ~correct[n], ~groups_of().well_formed[n]):
            for groups in draws:
                np.testing.assert_allclose(np.sort(groups.credits[n, members]), np.sort(of[n, members]), atol=1e-12)
    assert len({tuple(groups.credits[0, [0, 1, 3]].round(9)) for groups in draws}) == 3  # whose of the correct is the odd mode
    assert draws[0].mode_keys.tolist() == groups_of().mode_keys.tolist()  # the groups themselves are not told
    with pytest.raises(ValueError, match="unknown option 'kernels'"):
        make_shaper("random_partition", of_kwargs={"kernels": "equality_key"})
    assert make_shaper("random_partition", of="vendi").min_group_size == 2


def test_mean_matched_keeps_the_mean_of_each_class_and_nothing_else():
    correct = groups_of().correct
    for of, options in (("setpo", {"kernel": "equality_key"}), ("dra_grpo", {"kernel": "equality_key"})):
        source = shaped(make_shaper(of, **options), groups_of())
        control = shaped(make_shaper("mean_matched", of=of, of_kwargs=options), groups_of())
        for field in ("credits", "shaped_rewards", "weights"):
            for n in range(len(KEYS)):
                for members in (correct[n], ~correct[n]):
                    if members.any():
                        given = getattr(source, field)[n, members].mean()
                        np.testing.assert_allclose(getattr(control, field)[n, members], given, atol=1e-12)
    np.testing.assert_allclose(control.shaped_rewards[0], [(0.5 + 0.5 + 1) / 3 if right else 0 for right in correct[0]], atol=1e-5)


# --- registry and apply ---


def test_unknown_names_and_options_list_the_choices():
    with pytest.raises(ValueError, match="unknown shaper 'sepo': choose one of .*setpo, shuffled"):
        make_shaper("sepo")
    with pytest.raises(ValueError, match="unknown option 'lam' of shaper 'setpo': choose among embedder, kernel, .*malformed"):
        make_shaper("setpo", lam=0.5)
    with pytest.raises(ValueError, match="shaper_kwargs belong to the name"):
        resolve_shaper(SetPO(), {"scale": "raw"})
    with pytest.raises(ValueError, match="at least 3 completions, got group_size=2: raise it, or set shaper=None"):
        resolve_shaper("setpo", None, 2)
    assert resolve_shaper(None, None, 1) is None
    with pytest.raises(ValueError, match="registered already"):
        register("setpo")(lambda: SetPO())


def test_a_new_shaper_is_the_one_in_the_documentation(monkeypatch):
    monkeypatch.setattr(base, "_SHAPERS", dict(base._SHAPERS))
    source = base.__doc__.split("::\n\n", 1)[1].split("\n\nFrom there on")[0]
    lines = [line[4:] for line in source.splitlines()]
    assert len([line for line in lines if line.strip()]) < 15
    names = {"register": register, "dataclass": dataclass, "Shaping": Shaping, "__name__": "documentation"}
    exec("\n".join(lines), names)  # the example of our own docstring
    groups = shaped(make_shaper("rare_mode", power=1), groups_of())
    np.testing.assert_allclose(groups.credits[0], [1 / 2, 1 / 2, 1, 1, 1 / 2, 1 / 2])


@pytest.mark.parametrize("bad", [{"credits": np.zeros((4, 5))}, {"credits": np.full((4, 6), np.nan)}, {"diversity": np.zeros((4, 6))}])
def test_a_shaper_that_breaks_the_contract_is_named(bad):
    with pytest.raises(ValueError, match=f"expected .*{next(iter(bad))}.* from <function"):
        apply_shaper(groups_of(), lambda groups, rng: Shaping(**bad), np.random.default_rng(0))


def test_apply_replaces_what_an_earlier_shaper_wrote():
    groups = shaped(lambda groups, rng: Shaping(shaped_rewards=groups.rewards * 2, weights=groups.rewards * 3), groups_of())
    assert groups.shaped_rewards.max() == 2 and groups.weights.max() == 3
    shaped(lambda groups, rng: Shaping(), groups)
    np.testing.assert_array_equal(groups.shaped_rewards, groups.rewards)
    assert groups.shaped_rewards is not groups.rewards and (groups.weights == 1).all() and (groups.credits == 0).all()


def test_undefined_groups_are_neutral_whatever_the_shaper_returned():
    defined = np.array([True, False, True, False])
    groups = shaped(lambda groups, rng: Shaping(credits=np.ones((4, 6)), weights=np.zeros((4, 6)), defined=defined), groups_of())
    assert groups.credits[:, 0].tolist() == [1, 0, 1, 0] and groups.weights[:, 0].tolist() == [0, 1, 0, 1]


# --- the wrapper ---

ID = "setpo/Countdown-v0"
ACTION = ("<answer>1+2</answer>", "<answer>2*3</answer>", "", "<answer>1+2</answer>", "no idea")


def test_wrapper_reshapes_the_group_and_leaves_the_reward():
    plain = gym.make(ID, group_size=5, shaper=None)
    wrapped = ShaperWrapper(gym.make(ID, group_size=5, shaper=None), "setpo", {"scale": "g_minus_2"})
    built_in = gym.make(ID, group_size=5, shaper="setpo", shaper_kwargs={"scale": "g_minus_2"})
    results = []
    for env in (plain, wrapped, built_in):
        env.reset(seed=3)
        results.append(env.step(ACTION))
    assert results[0][:4] == results[1][:4] == results[2][:4]
    group, expected = results[1][4]["group"], results[2][4]["group"]
    assert (results[0][4]["group"]["credits"] == 0).all() and group["credits"].any()
    for key, value in expected.items():
        np.testing.assert_array_equal(group[key], value)


def test_wrapper_does_not_change_which_problem_comes_next():
    prompts = []
    for shaper in (None, "setpo", "shuffled"):
        env = gym.make(ID, group_size=5, shaper=None)
        env = env if shaper is None else ShaperWrapper(env, shaper)
        seen = [env.reset(seed=11)[0]]
        for _ in range(5):
            env.step(ACTION)
            seen.append(env.reset()[0])
        prompts.append(seen)
    assert prompts[0] == prompts[1] == prompts[2]


def test_wrapper_is_reproducible_from_the_seed():
    env = ShaperWrapper(gym.make(ID, group_size=5), "shuffled")
    draws = []
    for _ in range(2):
        env.reset(seed=5)
        credits = [env.step(ACTION)[4]["group"]["credits"]]
        for _ in range(6):
            env.reset()
            credits.append(env.step(ACTION)[4]["group"]["credits"])
        draws.append(np.stack(credits))
    np.testing.assert_array_equal(*draws)
    assert len(np.unique(draws[0], axis=0)) > 1


def test_wrapper_in_make_vec_spec_and_pickle():
    envs = gym.make_vec(ID, num_envs=3, group_size=5, shaper=None, wrappers=[ShaperWrapper], vector_kwargs={"autoreset_mode": "Disabled"})
    envs.reset(seed=[1, 2, 3])
    infos = envs.step([ACTION] * 3)[4]
    assert infos["group"]["credits"].shape == (3, 5) and infos["group"]["credits"].any()

    env = ShaperWrapper(gym.make(ID, group_size=5, shaper=None), "setpo", {"scale": "zscore"})
    env.reset(seed=1)
    expected = env.step(ACTION)[4]["group"]["credits"]
    again = gym.make(gym.envs.registration.EnvSpec.from_json(json.dumps(json.loads(env.spec.to_json()))))
    for twin in (again, pickle.loads(pickle.dumps(env))):
        twin.reset(seed=1)
        np.testing.assert_array_equal(twin.step(ACTION)[4]["group"]["credits"], expected)


def test_wrapper_refuses_too_small_groups_and_unknown_shapers():
    with pytest.raises(ValueError, match="at least 3 completions, got group_size=2"):
        ShaperWrapper(gym.make(ID, group_size=2, shaper=None))
    with pytest.raises(ValueError, match="unknown shaper"):
        ShaperWrapper(gym.make(ID, group_size=5, shaper=None), "nope")
