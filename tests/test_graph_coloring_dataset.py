import json
import random
from collections import Counter
from hashlib import sha256
from itertools import combinations

import pytest
import torch
from tiny_run import POLICY, SPACE

from setpo_agents.policies.base import Sampling
from setpo_agents.policies.tiny import TinyConfig
from setpo_agents.warm_start import WarmStartConfig, warm_start
from setpo_envs.checks import check_dataset, right_completion
from setpo_envs.datasets import graph_coloring
from setpo_envs.datasets.countdown import countdown_dataset
from setpo_envs.datasets.graph_coloring import GraphColoringSettings, connected, enumerate_space, graph_coloring_dataset, split_of
from setpo_envs.prompts import EDGE_LETTERS, graph_coloring_terse
from setpo_verifiers import colorings, mode_key, parse_graph, verify

SMALL = {"min_vertices": 3, "max_vertices": 4, "edge_range": [2, 6]}
SPLITS = ("train", "validation", "test")


def keys(dataset, count=None):
    return [dataset[i].problem_id for i in range(count or len(dataset))]


def test_an_item_depends_on_seed_index_and_split_only():
    data = graph_coloring_dataset(seed=1)
    assert keys(data, 50) == keys(graph_coloring_dataset(seed=1, settings={"size": 50})) != keys(graph_coloring_dataset(seed=2), 50)
    assert data[7] == data[7] and data[7] == graph_coloring_dataset(seed=1)[7]
    hard = [graph_coloring_dataset(seed=seed, difficulty="hard") for seed in (1, 2)]
    assert not set(keys(hard[0], 60)) & set(keys(hard[1], 60))


def test_known_items_never_change():
    # frozen: another problem at an index, or in a split, changes every result that was ever measured
    assert keys(graph_coloring_dataset(difficulty="easy"), 2) == [
        "graph_coloring/01,02,12,14,34:3",
        "graph_coloring/03,04,13,23,24,34:3",
    ]
    wide = {"min_vertices": 3, "max_vertices": 10, "edge_range": [3, 12], "colors": 4}
    found = [key for settings in (None, wide) for key in keys(graph_coloring_dataset(settings=settings, seed=4, split="validation"), 30)]
    assert sha256(" ".join(found).encode()).hexdigest()[:16] == "e328e072ef08d838"
    pairs = [split_of(parse_graph({"n": n, "edges": [[0, n - 1]], "colors": 2})) for n in range(2, 11)]
    assert pairs == ["train", "test", "train", "train", "test", "train", "train", "validation", "train"]


def test_generated_problems_are_within_the_settings():
    settings = {"min_vertices": 5, "max_vertices": 7, "edge_range": [5, 9], "min_modes": 2, "max_modes": 6, "size": 80}
    data = graph_coloring_dataset(settings=settings)
    vertices, edges = Counter(), Counter()
    for problem in data:
        graph = parse_graph(problem.gold)
        assert connected(graph.n, graph.edges) and graph.colors == 3
        assert problem.metadata["modes"] == colorings(graph) and 2 <= problem.metadata["n_modes"] <= 6
        assert (problem.metadata["n_vertices"], problem.metadata["n_edges"]) == (graph.n, len(graph.edges))
        vertices[graph.n] += 1
        edges[len(graph.edges)] += 1
    assert set(vertices) == {5, 6, 7} and set(edges) <= set(range(5, 10)) and len(edges) > 2 and len(data) == 80
    check_dataset(data)


def test_generated_graphs_are_drawn_evenly():
    settings = {"min_vertices": 4, "max_vertices": 4, "edge_range": [3, 3], "size": 400}
    seen = Counter(keys(graph_coloring_dataset(settings=settings)))
    listed = keys(graph_coloring_dataset("enumerate", settings={**settings, "size": None}))
    assert set(seen) == set(listed) and len(listed) > 9
    expected = 400 / len(listed)
    # above the 99.9 % quantile of chi-square with 15 degrees of freedom, and there are fewer
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < 37.7


def edges_of(key):
    return tuple((int(edge[0]), int(edge[1])) for edge in key.partition("/")[2].partition(":")[0].split(","))


def test_splits_are_disjoint_whatever_the_seeds_and_of_the_stated_sizes():
    found = {
        split: {edges_of(key) for seed in range(3) for key in keys(graph_coloring_dataset(split=split, seed=seed, settings=settings), 40)}
        for split in SPLITS
        for settings in ({**SMALL, "colors": 3 + (split == "test")},)  # the same graphs with more colours are of the same split
    }
    assert not found["train"] & found["validation"] and not found["train"] & found["test"] and not found["validation"] & found["test"]
    space = enumerate_space(GraphColoringSettings(min_vertices=5, max_vertices=6, edge_range=(5, 6), colors=4))
    shares = Counter(split_of(item.graph) for item in space)
    # some 5,000 graphs: 2 % is more than three standard errors
    assert {split: shares[split] / len(space) for split in SPLITS} == pytest.approx(
        {"train": 0.8, "validation": 0.1, "test": 0.1}, abs=0.02
    )


def test_enumerate_lists_the_space_once_in_a_fixed_order():
    data = {split: graph_coloring_dataset("enumerate", split=split, settings={**SMALL, "colors": 4}) for split in SPLITS}
    listed = [key for split in SPLITS for key in keys(data[split])]
    # connected labelled graphs (OEIS A001187): 4 of three vertices and 38 of four, which all have colourings with four colours
    assert len(listed) == len(set(listed)) == 42
    assert keys(data["train"]) == keys(graph_coloring_dataset("enumerate", settings={**SMALL, "colors": 4}))
    for split in SPLITS:
        assert all(split_of(parse_graph(problem.gold)) == split for problem in map(data[split].__getitem__, range(len(data[split]))))
        check_dataset(data[split])
    assert len(enumerate_space(GraphColoringSettings.of(SMALL))) == 41  # without the complete graph of four
    assert len(enumerate_space(GraphColoringSettings(5, 5, (4, 10), 4))) == 727  # of 728, without the complete one


def test_connected():
    assert connected(1, ()) and connected(4, ((0, 3), (1, 2), (2, 3))) and connected(4, ((2, 3), (1, 2), (0, 1)))
    assert not connected(2, ()) and not connected(4, ((0, 1), (2, 3))) and not connected(4, ((1, 2), (1, 3), (2, 3)))


@pytest.mark.parametrize("difficulty, most", [("easy", 5), ("medium", 7), ("hard", 9)])
def test_no_answer_is_right_for_most_problems(difficulty, most):
    """Diversity has to be earned: the best constant answer solves few problems."""
    data = graph_coloring_dataset(difficulty=difficulty, split="test", settings={"size": 150})
    modes = Counter(mode for problem in data for mode in problem.metadata["modes"])
    assert max(modes.values()) / 150 < {5: 0.45, 7: 0.2, 9: 0.1}[most]
    assert max(problem.metadata["n_vertices"] for problem in data) == most


# ---- prompts and texts


def test_prompts():
    problem = graph_coloring_dataset("enumerate", settings=SMALL, prompt_format="terse", split=split_of(PATH))[0]
    assert problem.prompt == "3ab>" and problem.gold == {"n": 3, "edges": [[0, 1], [0, 2]], "colors": 3}
    words = graph_coloring_dataset("enumerate", settings=SMALL, split=split_of(PATH))[0].prompt
    assert (
        "vertices 0 to 2 " in words and "0-1, 0-2." in words and "3 colours 0, 1, 2" in words and "<think>" in words and "<answer>" in words
    )
    assert right_completion(problem) == "\\boxed{011}"


def test_the_letters_of_edges():
    full = graph_coloring_terse(10, tuple(combinations(range(10), 2)), 4)
    assert full == f"4{EDGE_LETTERS}>" and len(set(EDGE_LETTERS)) == 45
    named = {graph_coloring_terse(10, (edge,), 3)[1]: edge for edge in combinations(range(10), 2)}
    assert [named[letter] for letter in "abcdefS"] == [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (8, 9)]


PATH = parse_graph({"n": 3, "edges": [[0, 1], [0, 2]], "colors": 3})


@pytest.mark.parametrize("prompt_format", ["tinyzero", "terse"])
@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_every_format_tells_problems_apart_and_takes_the_gold(prompt_format, difficulty):
    data = [graph_coloring_dataset(difficulty=difficulty, prompt_format=prompt_format)[index] for index in range(40)]
    assert len({problem.prompt for problem in data}) == len({problem.problem_id for problem in data})
    for problem in data:
        assert verify("graph_coloring", right_completion(problem), problem.gold, mode="strict").reward == 1
        # the sample answer of the prompt, repeated, earns nothing
        assert verify("graph_coloring", problem.prompt, problem.gold).reward == 0


def test_a_mode_is_written_in_every_naming_of_the_colours_alike():
    data = graph_coloring_dataset("enumerate", settings=SMALL, prompt_format="terse")
    problem = next(problem for problem in map(data.__getitem__, range(len(data))) if "0012" in problem.metadata["modes"])
    rng = random.Random(0)
    written = Counter(data.write_mode(problem, "0012", rng) for _ in range(600))
    assert set(written) == {"0012", "0021", "1102", "1120", "2201", "2210"} and min(written.values()) > 60
    assert {verify("graph_coloring", text, problem.gold).mode_key for text in written} == {"0012"}
    generated = graph_coloring_dataset()
    text = generated.write_mode(generated[0], generated[0].metadata["modes"][0], rng)
    assert verify("graph_coloring", text, generated[0].gold).mode_key == generated[0].metadata["modes"][0]


def test_countdown_modes_are_written_as_before():
    data = countdown_dataset("enumerate", settings=SPACE["settings"])
    mode = "(2+3)*5"
    written = {data.write_mode(None, mode_key(mode), random.Random(seed)) for seed in range(50)}
    assert written == {"(2+3)*5", "(3+2)*5", "5*(2+3)", "5*(3+2)"}
    rng = random.Random(1)  # frozen: warm starts, the packaged one among them, hang on it
    assert [data.write_mode(None, mode_key("1+2*3-4"), rng) for _ in range(4)] == ["2*3-4+1", "2*3-4+1", "1+3*2-4", "3*2-4+1"]


# ---- the warm start


def test_the_tiny_policy_learns_colourings(tmp_path):
    settings = {"min_vertices": 4, "max_vertices": 4, "edge_range": [3, 5]}
    data = graph_coloring_dataset("enumerate", settings=settings, prompt_format="terse")
    config = TinyConfig(alphabet="0123abcdef>", d_model=32, n_layers=1, n_heads=2, max_prompt=7, max_new_tokens=5)
    path = tmp_path / "start.pt"
    torch.set_num_threads(1)
    policy = warm_start(data, WarmStartConfig(steps=200, problems_per_step=16, learning_rate=5e-3), path, policy_config=config)
    problems = [data[index] for index in range(len(data))]
    samples = policy.generate([problem.prompt for problem in problems], 16, Sampling(), torch.Generator().manual_seed(0))
    rewards = [verify("graph_coloring", text, p.gold).reward for p, texts in zip(problems, samples.completions_NG) for text in texts]
    guessed = sum(6 * p.metadata["n_modes"] / 81 for p in problems) / len(problems)  # four random colours; six names of each mode
    assert sum(rewards) / len(rewards) > guessed + 0.15


def test_a_data_set_that_does_not_write_its_modes(tmp_path):
    problems = [graph_coloring_dataset()[0]]
    with pytest.raises(ValueError, match=r"with write_mode\(problem, mode, rng\), got list"):
        warm_start(problems, WarmStartConfig(steps=1), tmp_path / "start.pt", policy_config=POLICY)


# ---- arguments


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"vertices": 3}, "min_vertices, max_vertices, edge_range"),
        ({"min_vertices": 2}, "min_vertices to be an integer from 3 to 10, got 2"),
        ({"min_vertices": 5.0}, "min_vertices .* got 5.0"),
        ({"max_vertices": 4}, "max_vertices to be an integer from 5 to 10, got 4"),
        ({"max_vertices": 11}, "max_vertices .* got 11"),
        ({"colors": 1}, "colors to be an integer from 2 to 4, got 1"),
        ({"colors": 5}, "colors to be an integer from 2 to 4, got 5"),
        ({"edge_range": [9, 7]}, "edge_range to be two integers"),
        ({"edge_range": 9}, "edge_range to be two integers"),
        ({"edge_range": [4, 5]}, "connected graphs of 7 vertices, with 6 to 21 edges, got"),
        ({"edge_range": [11, 20]}, "connected graphs of 5 vertices, with 4 to 10 edges, got"),
        ({"min_modes": 0}, "min_modes"),
        ({"min_modes": 3, "max_modes": 2}, "max_modes .* at least 3"),
        ({"size": 0}, "size"),
        ("hard", "settings to be a dict"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        graph_coloring_dataset(settings=settings)


def test_settings_survive_json_and_objects_pass():
    typed = GraphColoringSettings.of(SMALL)
    assert GraphColoringSettings.of(json.loads(json.dumps(SMALL))) == typed and GraphColoringSettings.of(typed) is typed
    assert len(graph_coloring_dataset(settings=GraphColoringSettings(size=3))) == 3


def test_an_impossible_request_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(graph_coloring, "MAX_DRAWS", 50)
    with pytest.raises(ValueError, match="found no problem in split 'train' .* loosen the settings"):
        graph_coloring_dataset(settings={"min_modes": 5000})[0]


def test_a_space_too_large_says_how_large():
    with pytest.raises(ValueError, match=r"at most 50000 sets of edges .*, got 1020680"):
        graph_coloring_dataset("enumerate", settings={"min_vertices": 7})
    with pytest.raises(ValueError, match="size"):
        graph_coloring_dataset("enumerate", settings={**SMALL, "size": 5})
    with pytest.raises(ValueError, match="at least one problem in split 'test'"):
        graph_coloring_dataset("enumerate", split="test", settings={"min_vertices": 3, "max_vertices": 3, "edge_range": [3, 3]})


@pytest.mark.parametrize("index", [-1, 10_000])
def test_an_index_out_of_range(index):
    with pytest.raises(IndexError, match="below 10000"):
        graph_coloring_dataset()[index]


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"seed": -1}, "seed"),
        ({"prompt_format": "r1"}, "tinyzero, terse"),
        ({"source": "hub"}, "'generator', 'enumerate' or a data set"),
        ({"split": "dev"}, "train, validation, test"),
    ],
)
def test_other_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        graph_coloring_dataset(**kwargs)


def test_problems_of_ones_own():
    listed = [graph_coloring_dataset()[0]]
    assert graph_coloring_dataset(listed) is listed
    with pytest.raises(ValueError, match="no settings beside"):
        graph_coloring_dataset(listed, settings=SMALL)


def test_every_pair_of_vertices_can_be_an_edge():
    data = graph_coloring_dataset(settings={"min_vertices": 6, "max_vertices": 6, "size": 60})
    seen = {tuple(edge) for problem in data for edge in problem.gold["edges"]}
    assert seen == set(combinations(range(6), 2))
