import json
from collections import Counter
from hashlib import sha256

import pytest

from setpo_envs.checks import check_dataset
from setpo_envs.datasets import Problem
from setpo_envs.datasets.countdown import CountdownSettings, countdown_dataset, enumerate_space, problem_modes, split_of
from setpo_verifiers import verify
from setpo_verifiers.solver import solve

SMALL = {"min_numbers": 2, "max_numbers": 3, "number_range": [1, 5], "target_range": [1, 20]}
SPLITS = ("train", "validation", "test")


def keys(dataset, count=None):
    return [dataset[i].problem_id for i in range(count or len(dataset))]


def test_an_item_depends_on_seed_index_and_split_only():
    data = countdown_dataset(seed=1)
    assert keys(data, 50) == keys(countdown_dataset(seed=1, settings={"size": 50})) != keys(countdown_dataset(seed=2), 50)
    # neighbouring seeds share no more than chance does
    assert len(set(keys(data, 200)) & set(keys(countdown_dataset(seed=2), 200))) < 5
    assert data[7] == data[7] and data[7] == countdown_dataset(seed=1)[7]


def test_known_items_never_change():
    # frozen: another problem at an index, or in a split, changes every result that was ever measured
    assert keys(countdown_dataset(seed=0), 3) == ["countdown/20,20,93=93", "countdown/34,37,94=23", "countdown/6,42,56,61=53"]
    wide = {"min_numbers": 2, "max_numbers": 5, "number_range": [1, 9], "target_range": [0, 30]}
    found = [key for settings in (None, wide) for key in keys(countdown_dataset(settings=settings, seed=4, split="validation"), 150)]
    assert sha256(" ".join(found).encode()).hexdigest()[:16] == "45d391f99dec9c75"
    assert [split_of([3, 1, 2], target) for target in range(5)] == ["test", "train", "test", "train", "train"]


def test_generated_problems_are_solvable_and_within_the_settings():
    data = countdown_dataset(settings={"min_numbers": 2, "number_range": [2, 30], "target_range": [5, 40], "size": 60})
    assert len(data) == 60
    counts = Counter()
    for i in range(60):
        problem = data[i]
        numbers, target = problem.gold["numbers"], problem.gold["target"]
        counts[len(numbers)] += 1
        assert all(2 <= number <= 30 for number in numbers) and 5 <= target <= 40
        assert solve(numbers, target)
    assert set(counts) == {2, 3, 4}
    check_dataset(data)


def test_splits_are_disjoint_whatever_the_seeds_and_of_the_stated_sizes():
    found = {
        split: {key for seed in range(4) for key in keys(countdown_dataset(split=split, seed=seed, settings=SMALL), 150)}
        for split in SPLITS
    }
    assert not found["train"] & found["validation"] and not found["train"] & found["test"] and not found["validation"] & found["test"]
    shares = Counter(split_of((a, b, c), target) for a in range(1, 20) for b in range(1, 20) for c in range(1, 20) for target in range(3))
    total = sum(shares.values())
    # equal multisets hash equally, so the sample is of about 3 * 1330 problems: 2 % is more than three standard errors
    assert {split: round(shares[split] / total, 2) for split in SPLITS} == pytest.approx(
        {"train": 0.8, "validation": 0.1, "test": 0.1}, abs=0.02
    )
    assert split_of([3, 1, 2], 6) == split_of([1, 2, 3], 6)


def test_difficulty_is_the_number_of_modes():
    data = countdown_dataset(settings={**SMALL, "min_modes": 2, "max_modes": 3, "size": 30})
    for i in range(30):
        problem = data[i]
        assert 2 <= problem.metadata["n_modes"] <= 3
        assert problem.metadata["modes"] == solve(problem.gold["numbers"], problem.gold["target"])


@pytest.mark.parametrize("operators", ["+", "+-", "*/", "+*"])
def test_operators_restrict_problems_and_modes(operators):
    settings = {**SMALL, "operators": operators, "min_numbers": 3, "min_modes": 1, "max_modes": 99, "size": 20}
    data = countdown_dataset(settings=settings)
    for i in range(20):
        modes = data[i].metadata["modes"]
        assert modes and all(set(key) <= set(operators + "0123456789()") for key in modes)
    listed = enumerate_space(CountdownSettings.of({**settings, "size": None}))
    assert listed and len(listed) < len(enumerate_space(CountdownSettings.of({**SMALL, "min_numbers": 3})))


def test_enumerate_lists_the_space_once_in_a_fixed_order():
    data = {split: countdown_dataset("enumerate", split=split, settings=SMALL) for split in SPLITS}
    listed = [key for split in SPLITS for key in keys(data[split])]
    brute = set()
    for a in range(1, 6):
        for b in range(a, 6):
            for c in [None, *range(b, 6)]:
                numbers = (a, b) if c is None else (a, b, c)
                brute |= {f"countdown/{','.join(map(str, numbers))}={target}" for target in range(1, 21) if solve(numbers, target)}
    assert len(listed) == len(set(listed)) and set(listed) == brute
    assert keys(data["train"]) == keys(countdown_dataset("enumerate", settings=SMALL))
    for split in SPLITS:
        assert all(split_of(p.gold["numbers"], p.gold["target"]) == split for p in (data[split][i] for i in range(len(data[split]))))
        check_dataset(data[split])


def test_the_space_of_the_tiny_policy_has_3788_problems():
    settings = {"min_numbers": 4, "max_numbers": 4, "number_range": [1, 7], "target_range": [1, 30], "min_modes": 2}
    sizes = [len(countdown_dataset("enumerate", split=split, settings=settings)) for split in SPLITS]
    assert sum(sizes) == 3788 and min(sizes) > 300


def test_prompts():
    problem = countdown_dataset("enumerate", settings=SMALL, prompt_format="terse")[0]
    numbers, target = problem.gold["numbers"], problem.gold["target"]
    assert problem.prompt == "1,1=02>" and (numbers, target) == ([1, 1], 2)
    assert verify("countdown", problem.metadata["modes"][0], problem.gold).reward == 1
    words = countdown_dataset("enumerate", settings=SMALL)[0].prompt
    assert "every number exactly once" in words and "<answer>" in words and "<think>" in words
    assert ", ".join(map(str, numbers)) in words and str(target) in words


def test_problem_modes_come_from_the_metadata_or_the_solver():
    assert problem_modes(Problem("x", "countdown", "", {"numbers": [3, 5, 7], "target": 15})) == ("3+5+7",)
    assert problem_modes(Problem("x", "countdown", "", {"numbers": [1, 2], "target": 3})) == ("1+2",)
    assert problem_modes(Problem("x", "countdown", "", None, {"modes": ("a", "b")})) == ("a", "b")
    with pytest.raises(ValueError, match="at most|1 to"):
        problem_modes(Problem("x", "countdown", "", {"numbers": [1] * 6, "target": 3}))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"max_number": 3}, "min_numbers, max_numbers, number_range"),
        ({"min_numbers": 0}, "min_numbers to be an integer of at least 1, got 0"),
        ({"min_numbers": 3.0}, "min_numbers .* got 3.0"),
        ({"max_numbers": 2}, "max_numbers to be an integer of at least 3, got 2"),
        ({"number_range": [5, 1]}, "number_range to be two integers"),
        ({"number_range": 9}, "number_range to be two integers"),
        ({"number_range": [0, 9]}, "number_range within 1"),
        ({"target_range": [-5, 5]}, "target_range to start at 0"),
        ({"operators": "+^"}, "operators to be distinct characters"),
        ({"operators": ""}, "operators to be distinct characters"),
        ({"operators": "-*"}, r"'\+' beside '-'"),
        ({"min_modes": 0}, "min_modes"),
        ({"min_modes": 3, "max_modes": 2}, "max_modes .* at least 3"),
        ({"max_numbers": 6, "min_modes": 2}, "max_numbers of at most 5 where modes are counted, got 6"),
        ({"size": 0}, "size"),
        ("hard", "settings to be a dict"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        countdown_dataset(settings=settings)


def test_settings_survive_json_and_objects_pass():
    typed = CountdownSettings.of(SMALL)
    assert CountdownSettings.of(json.loads(json.dumps(SMALL))) == typed and CountdownSettings.of(typed) is typed
    assert len(countdown_dataset(settings=CountdownSettings(size=3))) == 3


def test_an_impossible_request_ends_with_an_error():
    data = countdown_dataset(settings={"min_numbers": 2, "max_numbers": 2, "number_range": [1, 2], "target_range": [90, 99]})
    with pytest.raises(ValueError, match="loosen"):
        data[0]
    with pytest.raises(ValueError, match="loosen"):
        countdown_dataset(settings={**SMALL, "min_modes": 5000})[0]


def test_a_space_too_large_says_how_large():
    with pytest.raises(ValueError, match=r"at most 2000000 pairs .*, got 401876475"):
        countdown_dataset("enumerate")
    with pytest.raises(ValueError, match="at most 5 numbers with"):
        countdown_dataset("enumerate", settings={"max_numbers": 6})
    with pytest.raises(ValueError, match="size"):
        countdown_dataset("enumerate", settings={**SMALL, "size": 5})
    with pytest.raises(ValueError, match="at least one problem in split 'test'"):
        countdown_dataset(
            "enumerate", split="test", settings={"min_numbers": 2, "max_numbers": 2, "number_range": [1, 1], "target_range": [2, 2]}
        )


@pytest.mark.parametrize("index", [-1, 10_000])
def test_an_index_out_of_range(index):
    with pytest.raises(IndexError, match="below 10000"):
        countdown_dataset()[index]


def test_a_data_set_can_be_iterated():
    data = countdown_dataset(settings={"size": 4})
    assert [problem.problem_id for problem in data] == keys(data)


@pytest.mark.parametrize(
    "kwargs, message",
    [({"seed": -1}, "seed"), ({"prompt_format": "r1"}, "tinyzero, terse"), ({"source": "web"}, "'generator', 'enumerate', 'hub'")],
)
def test_other_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        countdown_dataset(**kwargs)
