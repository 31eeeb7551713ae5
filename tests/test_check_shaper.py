"""check_shaper: for every property there is a shaper that breaks it and is told so. (What is registered: test_shapers_contract.py.)"""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from setpo_envs.checks import check_shaper
from setpo_envs.shapers import SetPO, Shaping, base, register


def test_an_object_is_checked_and_stays_as_it_is():
    shaper = base.make_shaper("ucb_exploration")
    check_shaper(shaper)
    assert not shaper.seen
    check_shaper(SetPO(kernel="equality_key"))
    with pytest.raises(ValueError, match="unknown option 'colour'"):
        check_shaper("setpo", {"colour": "red"})
    with pytest.raises(ValueError, match="got None"):
        check_shaper(None)


# --- one broken shaper for each property ---


def rare(groups):
    """A sound credit, for the broken to start from."""
    return 1.0 / (groups.modes[:, :, None] == groups.modes[:, None, :]).sum(axis=2)


@dataclass
class Sound:
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups))


class NoShaping(Sound):
    def __call__(self, groups, rng):
        return rare(groups)


class OtherShape(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups)[:, 1:])


class NotFinite(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=groups.rewards / np.where(groups.valid, 1.0, np.nan))


class OnlyWithAnswers(Sound):
    def __call__(self, groups, rng):
        [key for row in groups.mode_keys for key in row if key.startswith("1")]
        return Shaping(credits=rare(groups))


class NeedsWords(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=np.array([[1 / len(text) for text in row] for row in groups.completions_NG]))


class EncodesText(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=np.array([[len(text.encode()) / 1e6 for text in row] for row in groups.completions_NG]))


class RaisesReward(Sound):
    def __call__(self, groups, rng):
        groups.rewards += 0.1
        return Shaping(credits=rare(groups))


class DropsCompletion(Sound):
    def __call__(self, groups, rng):
        groups.completions_NG[0][0] = ""
        return Shaping(credits=rare(groups))


class NormalisesInPlace(Sound):
    def __call__(self, groups, rng):
        for row in groups.completions_NG:
            for text in row:
                text.embedding[:] /= np.linalg.norm(text.embedding)
        return Shaping(credits=rare(groups))


class ForgetsProblem(Sound):
    def __call__(self, groups, rng):
        groups.problems[0].metadata["seen"] = True
        return Shaping(credits=rare(groups))


class DrawsFromNumpy(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups) + 0 * np.random.rand(*groups.rewards.shape))  # noqa: NPY002


class DrawsFromRandom(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups) + 0 * random.random())


class OwnGenerator(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups) + np.random.default_rng().random())


class PaysPlaces(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups) * np.arange(groups.group_size))


class PaysModeNumbers(Sound):
    def __call__(self, groups, rng):
        return Shaping(weights=1.0 + groups.modes)


class PaysFirst(Sound):
    """The first of the best: equal completions are paid by place."""

    def __call__(self, groups, rng):
        best_NG = np.zeros(groups.rewards.shape)
        best_NG[np.arange(groups.n_groups), groups.rewards.argmax(axis=1)] = 1.0
        return Shaping(credits=best_NG)


class SaysThatItBreaksTies(PaysFirst):
    breaks_ties = True


class SaysSoButPaysPlaces(PaysPlaces):
    breaks_ties = True


class DrawsUndeclared(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rng.normal(size=groups.rewards.shape))


class DrawsDeclared(DrawsUndeclared):
    draws = True


class RankedInBatch(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups) - rare(groups).mean())


class TwoNeeded(Sound):
    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups) / (groups.group_size - 1))


class DefinedBelowLeast(Sound):
    min_group_size = 3


class NeverDefined(Sound):
    min_group_size = 2

    def __call__(self, groups, rng):
        return Shaping(defined=np.full(groups.n_groups, groups.group_size > 2))


class OddLeast(Sound):
    min_group_size = 2.5


@dataclass
class NotPickled(Sound):
    by: object = field(default_factory=lambda: lambda: 1)


@dataclass
class Scaled(Sound):
    factor: float = 1.0

    def __call__(self, groups, rng):
        return Shaping(credits=rare(groups) * self.factor)


class LosesInPickle(Scaled):
    def __getstate__(self):
        return {"factor": self.factor / 2}


class OtherBeforeVerdicts(Sound):
    def before_verdicts(self, completions_NG):
        return lambda groups, rng: Shaping(credits=2 * rare(groups))


class RaisesBeforeVerdicts(Sound):
    def before_verdicts(self, completions_NG):
        raise KeyError("verdicts")


@dataclass
class Remembers(Sound):
    calls: int = 0

    def __call__(self, groups, rng):
        self.calls += 1
        return Shaping(credits=rare(groups) / self.calls)

    @property
    def state(self):
        return self.calls

    @state.setter
    def state(self, state):
        self.calls = state


class ForgetsState(Remembers):
    @property
    def state(self):
        return self.calls

    @state.setter
    def state(self, state):
        pass


class StateIsNoJson(Remembers):
    @property
    def state(self):
        return {self.calls}

    @state.setter
    def state(self, state):
        self.calls = next(iter(state))


VALUES = "shapes, finite values and untouched groups is broken by"
PLACES = "permutation of members is broken by"
LEAST = "the declared min_group_size is broken by"
EQUALS = "equal pay for equal completions is broken by"
PURE = "randomness from the given generator alone is broken by"


@pytest.mark.parametrize("shaper", [Sound, SaysThatItBreaksTies, DrawsDeclared, Remembers])
def test_sound_ones_pass_with_what_they_declare(shaper):
    check_shaper(shaper())


@pytest.mark.parametrize(
    "shaper, message",
    [
        (NoShaping, f"{VALUES} .*expected a Shaping, got ndarray; the group: correct"),
        (OtherShape, rf"{VALUES} .*expected credits of shape \(2, 6\)"),
        (NotFinite, f"{VALUES} .*expected finite credits .*the group: .*timeout"),
        (OnlyWithAnswers, f"{VALUES} .*AttributeError.*the group: .*no_answer None"),
        (NeedsWords, f"{VALUES} .*ZeroDivisionError.*the group: no_answer None ''"),
        (EncodesText, f"{VALUES} .*UnicodeEncodeError.*the group: .*error None"),
        (RaisesReward, f"{VALUES} .*it changed rewards"),
        (DropsCompletion, f"{VALUES} .*it changed completions_NG"),
        (NormalisesInPlace, f"{VALUES} .*it changed the embeddings"),
        (ForgetsProblem, f"{VALUES} .*it changed problems"),
        (DrawsFromNumpy, f"{PURE} .*it drew from numpy.random or random"),
        (DrawsFromRandom, f"{PURE} .*it drew from numpy.random or random"),
        (OwnGenerator, f"{PURE} .*two generators of one seed gave credits"),
        (PaysPlaces, rf"{EQUALS} .*members \[0, 3\] have credits \[0\.0, 1\.5\]; the group: correct"),
        (PaysModeNumbers, rf"{PLACES} .*in the order \[5, 4, 3, 2, 1, 0\] its members got weights .*the group: correct"),
        (PaysFirst, f"{EQUALS} "),
        (SaysSoButPaysPlaces, f"{PLACES} "),
        (DrawsUndeclared, f"{EQUALS} "),
        (RankedInBatch, "independence of groups is broken by .*alone and among others it got credits"),
        (TwoNeeded, rf"{LEAST} .*expected finite credits"),
        (DefinedBelowLeast, f"{LEAST} .*it is 3, but a group of 1 is defined; the group"),
        (NeverDefined, f"{LEAST} .*it is 2, but no group of 2 is defined"),
        (OddLeast, f"{LEAST} .*expected an integer of at least 1, got 2.5"),
        (NotPickled, "pickling is broken by .*Error: "),
        (LosesInPickle, "pickling is broken by .*it and its pickled copy gave credits"),
        (OtherBeforeVerdicts, "before_verdicts is broken by .*without and with it the members got credits"),
        (RaisesBeforeVerdicts, "before_verdicts is broken by .*KeyError: 'verdicts'"),
        (ForgetsState, "state is broken by .*a copy that was given its state gave credits"),
        (StateIsNoJson, "state is broken by .*TypeError"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero|invalid value")
def test_a_broken_one_is_told_which_property_and_shown_the_group(shaper, message):
    with pytest.raises(ValueError, match=message):
        check_shaper(shaper())


@pytest.fixture
def own_registry(monkeypatch):
    monkeypatch.setattr(base, "_SHAPERS", dict(base._SHAPERS))


def test_a_shaper_that_is_another_each_time_it_is_made_does_not_come_back_from_a_spec(own_registry):
    made = []

    @register("ever_larger")
    def ever_larger():
        made.append(len(made) + 1.0)
        return Scaled(made[-1])

    with pytest.raises(ValueError, match="round trip of the environment's spec is broken by .*credits .* and .*the group"):
        check_shaper("ever_larger")


def test_a_reward_that_moves_with_the_shaper_is_told(own_registry, monkeypatch):
    import setpo_envs.env

    real = setpo_envs.env.verify_groups

    def rewarding(problems, completions_NG, *, shaper=None, **kwargs):  # a broken environment stands in for a shaper that found a way
        groups = real(problems, completions_NG, shaper=shaper, **kwargs)
        if shaper is not None:
            groups.rewards = groups.rewards + 0.1
        return groups

    monkeypatch.setattr(setpo_envs.env, "verify_groups", rewarding)
    with pytest.raises(ValueError, match="the environment's reward is broken by SetPO"):
        check_shaper("setpo")
