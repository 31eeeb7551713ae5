import json
import os
import random
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import gymnasium as gym
import pytest
from puzzle_reader import holds, read_quiz, solutions

from setpo_envs.checks import check_dataset
from setpo_envs.datasets import knights_and_knaves
from setpo_envs.datasets.knights_and_knaves import KnightsAndKnavesSettings, knights_and_knaves_dataset
from setpo_envs.datasets.knights_and_knaves_logic import depth_of, puzzle_key, solution_of, truth_table, worlds
from setpo_envs.datasets.knights_and_knaves_text import NAMES
from setpo_envs.datasets.procedural import split_of_key
from setpo_verifiers import Status, verify
from setpo_verifiers.knights_and_knaves import ROLE_PAIRS

SPLITS = ("train", "validation", "test")
PROMPTS = ("logic_rl", "mem_kk", "plain")
WIDE = {"min_people": 2, "max_people": 8, "depth": 3, "width": 3}
DEEP = {"min_people": 2, "max_people": 4, "depth": 4, "width": 4}


def tables_of(statements):
    return [truth_table(statement, len(statements)) for statement in statements]


@pytest.mark.parametrize("settings, count", [({"min_people": 2, "max_people": 8}, 500), (WIDE, 400), (DEEP, 200)])
def test_the_text_alone_has_one_solution_and_it_is_the_gold(settings, count):
    data = knights_and_knaves_dataset(settings=settings)
    people, kinds, depths = Counter(), Counter(), Counter()
    for index in range(count):
        puzzle, problem = data.puzzle(index), data[index]
        assert problem.prompt.startswith(puzzle.quiz)
        names, roles, statements = read_quiz(puzzle.quiz)
        assert (tuple(names), roles, statements) == (puzzle.names, puzzle.role_names, puzzle.statements)
        assert solutions(statements) == [puzzle.solution]
        said = {name: roles[not truthful] for name, truthful in zip(names, puzzle.solution)}
        assert problem.gold == {"roles": said, "role_names": list(roles)}
        assert problem.metadata["n_people"] == len(names) and problem.metadata["depth"] == max(map(depth_of, statements))
        people[len(names)] += 1
        depths[problem.metadata["depth"]] += 1
        kinds.update(statement[0] for statement in statements)
    assert set(people) == set(range(settings["min_people"], settings["max_people"] + 1))
    assert set(kinds) == {"truth", "lie", "not", "and", "or", "implies", "iff"}
    assert max(depths) == settings.get("depth", 2)


def compounds(statement):
    if statement[0] in ("truth", "lie"):
        return []
    return [statement, *(inner for part in statement[1:] for inner in compounds(part))]


@pytest.mark.parametrize("settings", [{"min_people": 2}, WIDE, DEEP])
def test_everybody_says_something(settings):
    data = knights_and_knaves_dataset(settings=settings)
    for index in range(150):
        statements = data.puzzle(index).statements
        people, everywhere = worlds(len(statements))
        for own, statement, table in zip(people, statements, tables_of(statements)):
            assert table not in (0, everywhere, own, everywhere ^ own), statement
            for kind, *parts in compounds(statement):
                tables = {truth_table(part, len(statements)) for part in parts}
                assert len(tables) == len(parts) and not tables & {0, everywhere}, statement
                assert kind != "not" or parts[0][0] != "not", statement


def test_truth_tables_against_evaluation_in_every_world():
    data = knights_and_knaves_dataset(settings=WIDE)
    for index in range(40):
        statements = data.puzzle(index).statements
        for statement, table in zip(statements, tables_of(statements)):
            for world in range(2 ** len(statements)):
                truthful = [bool(world >> person & 1) for person in range(len(statements))]
                assert holds(statement, truthful) == bool(table >> world & 1)


def test_solution_of_wants_exactly_one():
    assert solution_of(tables_of([("lie", 1), ("lie", 0)])) is None  # two
    assert solution_of(tables_of([("lie", 0), ("truth", 0)])) is None  # none
    assert solution_of(tables_of([("and", ("lie", 0), ("truth", 1)), ("lie", 0)])) is None
    assert solution_of(tables_of([("and", ("lie", 0), ("lie", 1)), ("truth", 1)])) == (False, True)


def test_an_item_depends_on_seed_index_split_and_settings_only():
    data = knights_and_knaves_dataset(seed=1)
    first = [data[index] for index in range(30)]
    again = knights_and_knaves_dataset(seed=1, settings={"size": 30})
    assert [again[index] for index in reversed(range(30))] == first[::-1]
    other = knights_and_knaves_dataset(seed=2)
    assert not {problem.prompt for problem in first} & {other[index].prompt for index in range(30)}
    code = (
        "from setpo_envs.datasets.knights_and_knaves import knights_and_knaves_dataset as make; d = make(seed=1);"
        "print([d[i].problem_id for i in range(30)])"
    )
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == str([problem.problem_id for problem in first])


def test_known_items_never_change():
    # frozen: another puzzle at an index, or in a split, changes every result that was ever measured
    data = knights_and_knaves_dataset(seed=0)
    ids = ["knights_and_knaves/b9f2b4ee6122f132", "knights_and_knaves/cbbe133d21734bfc", "knights_and_knaves/f685368b47033422"]
    assert [data[index].problem_id for index in range(3)] == ids
    assert [data[index].metadata["key"] for index in range(3)] == ["b32162d3214fde7b", "a37b761823e5d450", "8afe21d4754157c5"]
    assert data.puzzle(2).quiz == (
        "At the edge of a desert, everybody is either an altruist, who always tells the truth, or an egoist, who always lies. You meet "
        'three of them: Petra, Stefan, and Emil. "Stefan is an egoist," you hear from Petra. "Petra is an altruist and Emil is an '
        'altruist," says Stefan. Emil says: "If Petra is an altruist, then I am an altruist." Who is an altruist, and who is an egoist?'
    )


def reworded(statement, rng):
    """An equivalent statement."""
    kind, *parts = statement
    if kind in ("truth", "lie"):
        return rng.choice([statement, ("not", ("lie" if kind == "truth" else "truth", *parts))])
    parts = [reworded(part, rng) for part in parts]
    if kind in ("and", "or"):
        rng.shuffle(parts)
        opposite = ("not", ("or" if kind == "and" else "and", *(("not", part) for part in parts)))
        return rng.choice([(kind, *parts), opposite])
    if kind == "implies":
        return rng.choice([(kind, *parts), ("or", ("not", parts[0]), parts[1]), ("implies", ("not", parts[1]), ("not", parts[0]))])
    if kind == "iff":
        return rng.choice([(kind, *parts[::-1]), ("not", ("iff", ("not", parts[0]), parts[1]))])
    return ("not", *parts)


def renamed(statement, place):
    if statement[0] in ("truth", "lie"):
        return statement[0], place[statement[1]]
    return (statement[0], *(renamed(part, place) for part in statement[1:]))


@pytest.mark.parametrize("settings", [{"min_people": 2, "max_people": 8}, DEEP])
def test_a_puzzle_in_other_words_has_the_same_key_and_split(settings):
    rng = random.Random(0)
    data = knights_and_knaves_dataset(settings=settings, split="test")
    for index in range(100):
        puzzle = data.puzzle(index)
        place = list(range(len(puzzle.names)))
        rng.shuffle(place)
        moved = [()] * len(place)
        for person, statement in enumerate(puzzle.statements):
            moved[place[person]] = reworded(renamed(statement, place), rng)
        assert puzzle_key(tables_of(moved)) == puzzle.key == data[index].metadata["key"]
        assert split_of_key(puzzle.key) == "test"


def test_keys_tell_most_puzzles_apart():
    statements = [("and", ("lie", 0), ("lie", 1)), ("truth", 0)]
    keys = {puzzle_key(tables_of([statements[0], other])) for other in [("truth", 0), ("lie", 0), ("iff", ("truth", 0), ("truth", 1))]}
    assert len(keys) == 3
    data = knights_and_knaves_dataset(settings={"min_people": 5, "max_people": 5})
    assert len({data.puzzle(index).key for index in range(500)}) > 450


def test_splits_are_disjoint_and_of_the_stated_sizes():
    keys = {
        split: {
            knights_and_knaves_dataset(split=split, seed=seed, settings=settings).puzzle(index).key
            for seed in range(2)
            for index in range(count)
        }
        for split, count in (("train", 500), ("validation", 100), ("test", 100))
        for settings in [{"min_people": 2, "max_people": 4}]
    }
    assert all(len(found) > 40 for found in keys.values())
    assert not keys["train"] & keys["validation"] and not keys["train"] & keys["test"] and not keys["validation"] & keys["test"]


def test_the_puzzles_of_two_people_are_as_many_as_the_docstring_says():
    people, everywhere = worlds(2)
    simple = [(kind, person) for kind in ("truth", "lie") for person in range(2)]
    compound = [(kind, a, b) for kind in ("and", "or", "implies", "iff") for a, b in product(simple, repeat=2)]
    sayable = {truth_table(statement, 2) for statement in [*simple, *compound]}
    # a table is 4 bits, world 0 to 3; exchanging the two people exchanges worlds 1 and 2
    exchange = {table: table & 0b1001 | (table & 0b10) << 1 | (table & 0b100) >> 1 for table in range(16)}
    found = {}
    for pair in product(sayable, repeat=2):
        trivial = any(table in (0, everywhere, own, everywhere ^ own) for own, table in zip(people, pair))
        if not trivial and solution_of(pair):
            found[min(pair, (exchange[pair[1]], exchange[pair[0]]))] = puzzle_key(pair)
    splits = Counter(split_of_key(key) for key in set(found.values()))
    assert (len(found), splits) == (38, {"train": 25, "validation": 3, "test": 7})


@pytest.mark.parametrize("prompt_format", PROMPTS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_gold_echoed_in_the_answer_format_is_correct(prompt_format, split):
    data = knights_and_knaves_dataset(settings=WIDE, prompt_format=prompt_format, split=split)
    seen = set()
    for index in range(120):
        problem = data[index]
        roles = problem.gold["roles"]
        seen.add(tuple(problem.gold["role_names"]))
        listed = "\n".join(f"({i}) {name} is a {role}" for i, (name, role) in enumerate(roles.items(), start=1))
        answer = f"CONCLUSION:\n{listed}" if prompt_format == "mem_kk" else f"<answer>\n{listed}\n</answer>"
        mode = "lenient" if prompt_format == "mem_kk" else "strict"
        verdict = verify(problem.task, answer, problem.gold, mode=mode)
        assert verdict.status is Status.CORRECT and (verdict.mode_key,) == problem.metadata["modes"]
        role = next(iter(roles.values()))
        other = next(word for word in problem.gold["role_names"] if word != role)
        assert verify(problem.task, answer.replace(f"is a {role}", f"is a {other}", 1), problem.gold, mode=mode).reason == "roles"
        assert verify(problem.task, problem.prompt, problem.gold).reward == 0  # the prompt given back is no answer
    assert seen == set(ROLE_PAIRS)
    check_dataset(data, limit=60)


def test_prompts_say_where_the_answer_goes():
    prompts = {name: knights_and_knaves_dataset(prompt_format=name, settings={"vary_roles": False})[0].prompt for name in PROMPTS}
    assert len(set(prompts.values())) == 3 and all("knight" in prompt and "knave" in prompt for prompt in prompts.values())
    assert "<think>" in prompts["logic_rl"] and "<answer>" in prompts["logic_rl"] and "CONCLUSION" not in prompts["logic_rl"]
    assert "CONCLUSION:" in prompts["mem_kk"] and "<answer>" not in prompts["mem_kk"]
    assert "<answer>" in prompts["plain"] and "<think>" not in prompts["plain"]
    with pytest.raises(ValueError, match="mem_kk.*'strict'"):
        gym.make("setpo_envs:setpo/KnightsAndKnaves-v0", prompt_format="mem_kk", mode="strict")


def test_role_words():
    data = knights_and_knaves_dataset(settings={"vary_roles": False})
    assert {data.puzzle(index).role_names for index in range(40)} == {("knight", "knave")}
    assert len(set(NAMES)) == len(NAMES) and not [(a, b) for a in NAMES for b in NAMES if a != b and a.lower() in b.lower()]
    assert not {name.lower() for name in NAMES} & {role for pair in ROLE_PAIRS for role in pair}


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"people": 3}, "settings among min_people, max_people, depth"),
        ({"min_people": 1}, "min_people to be an integer from 2 to 8, got 1"),
        ({"max_people": 9}, "max_people to be an integer from 3 to 8, got 9"),
        ({"min_people": 4, "max_people": 3}, "max_people to be an integer from 4"),
        ({"min_people": True}, "min_people .* got True"),
        ({"depth": 1}, "depth to be an integer from 2"),
        ({"depth": 5}, "depth"),
        ({"width": 1}, "width to be an integer from 2"),
        ({"vary_roles": 1}, "vary_roles"),
        ({"size": 0}, "size"),
        ("hard", "settings to be a dict"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        knights_and_knaves_dataset(settings=settings)


def test_settings_survive_json_and_objects_pass():
    typed = KnightsAndKnavesSettings.of(WIDE)
    assert KnightsAndKnavesSettings.of(json.loads(json.dumps(WIDE))) == typed and KnightsAndKnavesSettings.of(typed) is typed
    assert len(knights_and_knaves_dataset(settings=KnightsAndKnavesSettings(size=3))) == 3


def test_an_impossible_request_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(knights_and_knaves, "MAX_DRAWS", 50)
    monkeypatch.setattr(knights_and_knaves, "split_of_key", lambda key: "train")
    with pytest.raises(ValueError, match="no problem in split 'test'.*loosen"):
        knights_and_knaves_dataset(split="test")[0]


@pytest.mark.parametrize(
    "kwargs, message", [({"seed": -1}, "seed"), ({"prompt_format": "r1"}, "logic_rl, mem_kk, plain"), ({"source": "web"}, "'hub'")]
)
def test_other_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        knights_and_knaves_dataset(**kwargs)


@pytest.mark.parametrize("index", [-1, 10_000])
def test_an_index_out_of_range(index):
    with pytest.raises(IndexError, match="below 10000"):
        knights_and_knaves_dataset()[index]


@pytest.fixture(scope="module")
def hub_rows():
    if "SETPO_TEST_DATA" not in os.environ:
        pytest.skip("SETPO_TEST_DATA is not set: no sample of the hub's rows")
    return Path(os.environ["SETPO_TEST_DATA"]) / "data" / "kk"


def test_real_rows(hub_rows):
    paths = sorted(hub_rows.glob("*/*.jsonl"))
    assert len(paths) == 14
    for path in paths:
        data = knights_and_knaves_dataset(path, prompt_format="plain")
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert len(data) == len(rows) and len({problem.problem_id for problem in data}) == len(rows)
        for problem, row in zip(data, rows):
            assert problem.prompt.startswith(row["quiz"]) and problem.metadata["n_people"] == len(row["names"])
            for text in (row["solution_text"], row["solution_text_format"]):
                verdict = verify(problem.task, f"<answer>{text}</answer>", problem.gold, mode="strict")
                assert verdict.status is Status.CORRECT and (verdict.mode_key,) == problem.metadata["modes"]
        check_dataset(data, limit=20)


ROWS = [
    {
        "quiz": f"Ava and Ben{number} live here. Who is who?",
        "names": ["Ava", f"Ben{number}"],
        "knight_knave": {"knight": "saint", "knave": "sinner"},
        "solution": [True, False],
        "solution_text": f"Ava is a saint, and Ben{number} is a sinner.",
    }
    for number in range(3)
]


def check_rows(data, count=3):
    assert [data[i].gold for i in range(len(data))] == [
        {"roles": {"Ava": "saint", f"Ben{i}": "sinner"}, "role_names": ["saint", "sinner"]} for i in range(count)
    ]
    check_dataset(data)


def test_rows_from_files_and_tables(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    check_rows(knights_and_knaves_dataset(path, split="validation"))
    env = gym.make("setpo_envs:setpo/KnightsAndKnaves-v0", source=str(path), prompt_format="plain")
    assert env.reset(options={"index": 2})[0].startswith(ROWS[2]["quiz"])
    short = [{"quiz": row["quiz"], "solution_text": row["solution_text"]} for row in ROWS]
    path.write_text("".join(json.dumps(row) + "\n" for row in short))
    check_rows(knights_and_knaves_dataset(path))
    datasets = pytest.importorskip("datasets")
    check_rows(knights_and_knaves_dataset(datasets.Dataset.from_list(ROWS)))


def test_the_hub_through_a_local_repository_of_the_same_layout(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    lines = ["---", "configs:"]
    for config, row in (("train", ROWS[0]), ("test", ROWS[1])):
        (tmp_path / config).mkdir()
        lines += [f"- config_name: {config}", "  data_files:"]
        for n in range(2, 9):
            (tmp_path / config / f"people{n}.jsonl").write_text(json.dumps({**row, "quiz": f"{config} {n}"}) + "\n")
            lines += [f"  - split: {n}ppl", f"    path: {config}/people{n}.jsonl"]
    (tmp_path / "README.md").write_text("\n".join([*lines, "---", ""]))
    monkeypatch.setattr(knights_and_knaves, "HUB_ID", str(tmp_path))
    for split, name in (("train", "Ben0"), ("test", "Ben1")):
        data = knights_and_knaves_dataset("hub", split=split)
        assert [problem.prompt.split("\n")[0] for problem in data] == [f"{split} {n}" for n in range(2, 9)]
        assert all(name in problem.gold["roles"] for problem in data)
    with pytest.raises(ValueError, match="split 'train' or 'test'"):
        knights_and_knaves_dataset("hub", split="validation")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"quiz": None}, "column quiz with text, got None"),
        ({"quiz": " "}, "column quiz"),
        ({"solution": [True]}, "names and solution differ in length"),
        ({"names": ["Ava", "ava"]}, "names must be there and differ"),
        ({"knight_knave": {"knight": "saint"}}, "knave"),
    ],
)
def test_a_malformed_row_is_named_by_file_and_line(tmp_path, change, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps({**ROWS[1], **change}) + "\n")
    with pytest.raises(ValueError, match=message) as caught:
        knights_and_knaves_dataset(path)
    assert f"{path}, line 2: " in str(caught.value)
    with pytest.raises(ValueError, match="no settings beside"):
        knights_and_knaves_dataset(path, settings={"depth": 3})
    with pytest.raises(ValueError, match="no difficulty beside"):
        knights_and_knaves_dataset(path, difficulty="easy")
