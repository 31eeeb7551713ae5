"""Named difficulties: settings of the generators, and of a single reset."""

import gymnasium as gym
import pytest

import setpo_envs  # noqa: F401
from setpo_envs.datasets.countdown import CountdownSettings, countdown_dataset
from setpo_envs.datasets.graph_coloring import GraphColoringSettings, graph_coloring_dataset
from setpo_envs.datasets.knights_and_knaves import KnightsAndKnavesSettings, knights_and_knaves_dataset
from setpo_envs.datasets.procedural import DIFFICULTIES

# task: data set, settings class, what the metadata count, its range for each difficulty
TASKS = {
    "Countdown": (countdown_dataset, CountdownSettings, "n_numbers", {"easy": {3}, "medium": {4}, "hard": {5}}),
    "GraphColoring": (
        graph_coloring_dataset,
        GraphColoringSettings,
        "n_vertices",
        {"easy": {4, 5}, "medium": {6, 7}, "hard": {8, 9}},
    ),
    "KnightsAndKnaves": (
        knights_and_knaves_dataset,
        KnightsAndKnavesSettings,
        "n_people",
        {"easy": {2, 3}, "medium": {4, 5}, "hard": {6, 7, 8}},
    ),
}
each_task = pytest.mark.parametrize("task", TASKS)


def make(task, **kwargs):
    return gym.make(f"setpo/{task}-v0", group_size=3, **kwargs)


@each_task
def test_every_name_has_problems_of_its_own(task):
    dataset, _, counted, expected = TASKS[task]
    assert set(expected) == set(DIFFICULTIES)
    for name, sizes in expected.items():
        data = dataset(difficulty=name, split="validation", seed=3)
        assert {data[index].metadata[counted] for index in range(40)} == sizes
        # the other settings stay
        data = dataset(difficulty=name, settings={"size": 7})
        assert len(data) == 7 and data[3] == dataset(difficulty=name)[3]


@each_task
def test_of_one_data_set_and_from_the_start_are_the_same(task):
    dataset, settings_class, _, expected = TASKS[task]
    data = dataset(seed=5, split="test")
    for name in expected:
        assert data.with_difficulty(name)[2] == dataset(seed=5, split="test", difficulty=name)[2]
        assert data.with_difficulty(name).settings == settings_class.of(None, name)
    assert data.with_difficulty("easy").with_difficulty("hard").settings == settings_class.of({}, "hard")


@each_task
def test_a_reset_takes_one_problem_of_another_difficulty(task):
    counted, expected = TASKS[task][2:]
    env = make(task, difficulty="medium", seed=4)
    for name in ("hard", "easy", "hard"):
        _, info = env.reset(seed=1, options={"difficulty": name})
        problem = env.unwrapped.problem
        assert problem.metadata[counted] in expected[name] and info["problem_id"] == problem.problem_id
        assert problem == make(task, difficulty=name, seed=4).unwrapped.dataset[info["index"]]
        env.step(["", "", ""])
        env.reset()
        assert env.unwrapped.problem.metadata[counted] in expected["medium"]


@each_task
def test_which_index_comes_next_does_not_depend_on_the_difficulty(task):
    env = make(task)
    found = []
    for options in (None, {"difficulty": "hard"}):
        found.append([env.reset(seed=seed, options=options)[1]["index"] for seed in (8, None, None)])
    assert found[0] == found[1] and len(set(found[0])) > 1


@each_task
def test_a_reset_takes_difficulty_and_index_together(task):
    env = make(task)
    prompt, info = env.reset(options={"difficulty": "hard", "index": 6})
    assert info["index"] == 6 and prompt == env.unwrapped.dataset.with_difficulty("hard")[6].prompt != env.unwrapped.dataset[6].prompt
    options = {"difficulty": "hard", "index": 6}
    env.reset(options=options)
    assert options == {"difficulty": "hard", "index": 6}  # what the caller passed stays his


@each_task
@pytest.mark.parametrize(
    "options, message",
    [
        ({"difficulty": "extreme"}, "difficulty among easy, medium, hard, got 'extreme'"),
        ({"difficulty": None}, "difficulty among easy, medium, hard, got None"),
        ({"difficulty": "easy", "problem_id": "x"}, "problem_id and difficulty"),
        ({"difficulty": "easy", "indx": 3}, "among index, problem_id, difficulty"),
        ({"difficulty": "easy", "index": -1}, "got -1"),
    ],
)
def test_options_that_make_no_sense(task, options, message):
    with pytest.raises(ValueError, match=message):
        make(task).reset(options=options)


@each_task
def test_data_without_difficulties_say_so(task):
    problems = [TASKS[task][0]()[0]]
    with pytest.raises(ValueError, match="expected a data set with difficulties.*'easy'.*got list"):
        make(task, source=problems).reset(options={"difficulty": "easy"})
    with pytest.raises(ValueError, match="no difficulty beside"):
        make(task, source=problems, difficulty="easy")


@each_task
def test_arguments_that_make_no_sense(task):
    dataset, settings_class, _, _ = TASKS[task]
    with pytest.raises(ValueError, match="difficulty None or among easy, medium, hard, got 'extreme'"):
        dataset(difficulty="extreme")
    key = {"Countdown": "max_numbers", "GraphColoring": "max_vertices"}.get(task, "max_people")
    with pytest.raises(ValueError, match=f"no {key} in the settings, as difficulty='easy' sets it, got 6"):
        dataset(difficulty="easy", settings={key: 6})
    with pytest.raises(ValueError, match="either difficulty or a settings object"):
        dataset(difficulty="easy", settings=settings_class())


def test_difficulty_goes_with_every_way_to_make_countdown_problems():
    small = {"number_range": [1, 4], "target_range": [1, 9]}
    listed = countdown_dataset("enumerate", difficulty="easy", settings=small)
    assert len(listed) > 20 and {listed[index].metadata["n_numbers"] for index in range(len(listed))} == {3}
    with pytest.raises(ValueError, match="got ListedCountdown"):
        make("Countdown", source="enumerate", settings={**small, "max_numbers": 3}).reset(options={"difficulty": "easy"})


def test_the_measures_of_a_countdown_problem():
    counted = countdown_dataset("enumerate", settings={"min_numbers": 3, "max_numbers": 3, "number_range": [1, 4], "target_range": [1, 20]})
    measures = {problem.problem_id: problem.metadata for problem in (counted[index] for index in range(len(counted)))}
    assert measures["countdown/1,2,4=7"]["brackets"] == 0 and "1+2+4" in measures["countdown/1,2,4=7"]["modes"]
    needs_brackets = [metadata for metadata in measures.values() if all("(" in mode for mode in metadata["modes"])]
    assert needs_brackets and all((metadata["brackets"] > 0) == (metadata in needs_brackets) for metadata in measures.values())
    assert set(countdown_dataset()[0].metadata) == {"n_numbers"}  # modes are not counted unless asked for
