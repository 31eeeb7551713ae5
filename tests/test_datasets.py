"""The mathematics data sets: the hub's schemas through ``datasets`` itself, the quirks of real rows, and the embedded problems."""

import json
import os
import re
import subprocess
import sys
import warnings

import gymnasium as gym
import pytest
from hub_layouts import ASK, LAYOUTS, NOT_READ, build

from setpo_envs.checks import boxed_gold, check_dataset
from setpo_envs.datasets import maths
from setpo_envs.datasets.maths import AIME, AMC, GSM8K, MATH, MATH500, MINERVA, OLYMPIAD
from setpo_envs.datasets.problem import fingerprint
from setpo_envs.datasets.table import EMBEDDED, load
from setpo_verifiers import verify

TABLES = {"GSM8K": GSM8K, "MATH": MATH, "MATH500": MATH500, "AIME": AIME, "Olympiad": OLYMPIAD, "AMC": AMC, "Minerva": MINERVA}
pytestmark = pytest.mark.filterwarnings("error:.*left out")


def dataset(env, **kwargs):
    return gym.make(f"setpo_envs:setpo/{env}-v0", **kwargs).unwrapped.dataset


def golds(problems):
    return [problem.gold for problem in problems]


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# ---- the hub's schemas, by load_dataset's own code


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A working directory in which every hub id of the tables is a folder."""
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("pyarrow")
    root = tmp_path_factory.mktemp("hub")
    for hub_id in LAYOUTS:
        build(root, hub_id)
    patch = pytest.MonkeyPatch()
    patch.chdir(root)
    patch.setattr(datasets.config, "HF_DATASETS_CACHE", str(root / "cache"))
    datasets.disable_progress_bars()
    yield root
    datasets.enable_progress_bars()
    patch.undo()


def test_every_hub_id_of_the_tables_has_a_layout():
    assert {hub_set.hub_id for table in TABLES.values() for hub_set in (*table.hub, *table.copies)} == set(LAYOUTS)


@pytest.mark.parametrize("name", TABLES)
def test_every_copy_and_split_of_the_hub(hub, name):
    table = TABLES[name]
    for hub_set in (*table.hub, *table.copies):
        assert hub_set.splits == LAYOUTS[hub_set.hub_id][1]
        configs = [None if name == "default" else name for name in LAYOUTS[hub_set.hub_id][0] if name not in NOT_READ]
        assert hub_set.configs == ((None,) if None in configs else tuple(configs))
        splits = [load(table, hub_set.hub_id, split=split) for split in hub_set.splits]
        for n, problems in enumerate(splits):
            assert len(problems) == 2 * len(hub_set.configs) and problems.left_out == ()
            for problem in problems:
                asked = int(problem.prompt.split()[2])
                assert problem.prompt.startswith(ASK.format(asked)) and problem.gold == str(asked + 1)
            check_dataset(problems, disjoint_from=splits[:n] + splits[n + 1 :])
        assert golds(load(table, hub_set.hub_id)) == golds(splits[0])  # the default split is the first
    expected = sum(2 * len(hub_set.configs) for hub_set in table.hub)
    assert len(dataset(name)) == expected  # source="hub" by default


def test_the_years_of_aime_are_data_sets_of_their_own(hub):
    assert {problem.metadata["year"] for problem in dataset("AIME")} == {2024, 2025}
    for year in (2024, 2025):
        problems = dataset("AIME", year=year)
        assert len(problems) == 2 and {problem.metadata["year"] for problem in problems} == {year}
    assert len(dataset("AIME", source="AI-MO/aimo-validation-aime", year=2024)) == 2
    with pytest.raises(ValueError, match="expected year among 2024, 2025, or None for both, got 2023"):
        dataset("AIME", year=2023)
    with pytest.raises(ValueError, match="has only the split 'train', got 'test'"):
        dataset("AIME", year=2024, split="test")


def test_subjects_of_math_from_all_seven_configurations(hub):
    problems = dataset("MATH")
    assert len(problems) == 14 and {problem.metadata["level"] for problem in problems} == {2}


def test_any_data_set_of_the_hub(hub):
    columns = {"question": "question", "id_column": "answer"}
    problems = dataset("Dataset", source="opencompass/AIME2025", config="AIME2025-II", split="test", **columns)
    assert [problem.problem_id for problem in problems] == golds(problems) and len(problems) == 2
    with pytest.raises(ValueError, match="no split 'dev' in configuration 'main'"):
        gym.make("setpo_envs:setpo/Dataset-v0", source="openai/gsm8k", config="main", split="dev", question="question")


def test_the_hub_out_of_reach_is_an_error_that_names_the_ways_out():
    pytest.importorskip("datasets")
    program = "import gymnasium as gym; gym.make('setpo_envs:setpo/MATH-v0')"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": os.devnull + "/none"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(r"ConnectionError: could not load EleutherAI/hendrycks_math .*path of a local copy.*source='embedded'", last), last


def test_an_unknown_hub_id_names_those_that_are_known():
    with pytest.raises(ValueError, match="hub id among HuggingFaceH4/aime_2024, math-ai/aime25, .*got 'math-ai/aime26'"):
        dataset("AIME", source="math-ai/aime26")


# ---- rows that cannot be used, and rows that are not what they seem


def test_unusable_rows_are_left_out_and_named(tmp_path):
    good = {"problem": "What is 1+1?", "solution": "\\boxed{2}"}
    bad = [
        {"problem": "?", "solution": "\\boxed{}"},
        {"problem": "?", "solution": None},
        {"problem": " ", "solution": "1"},
        {"problem": "?"},
    ]
    path = write(tmp_path / "rows.jsonl", good, *bad)
    with pytest.warns(UserWarning, match=r"4 rows of source=.* are left out, .*line 2: expected a gold answer, got an empty one"):
        problems = load(MATH, path)
    assert golds(problems) == ["2"]
    assert [where for where, _ in problems.left_out] == [f"{path}, line {n}" for n in (2, 3, 4, 5)]
    for reason, words in zip([why for _, why in problems.left_out], ("empty", "None", "question", "columns problem and solution, or ")):
        assert words in reason
    write(path, *bad)
    with pytest.raises(ValueError, match="no row of source=.*line 1: expected a gold answer"):
        load(MATH, path)


@pytest.mark.parametrize(
    "table, row, why",
    [
        (GSM8K, {"question": "?", "answer": "It is 4."}, "ends in '#### ' and a number"),
        (AIME, {"problem": "?", "answer": "1000"}, "integer from 0 to 999"),
        (AIME, {"problem": "?", "answer": "x + 1"}, "integer from 0 to 999"),
        (OLYMPIAD, {"question": "?", "final_answer": None}, "gold answer"),
        (OLYMPIAD, {"question": "?", "final_answer": []}, "gold answer"),
        (OLYMPIAD, {"question": "?", "final_answer": ["1"], "modality": "Multimodal"}, "picture"),
        (OLYMPIAD, {"question": "?", "final_answer": ["1"], "image_1": {"bytes": ""}}, "picture"),
        (OLYMPIAD, {"question": "?", "final_answer": ["1"], "error": "small"}, "float"),
        (MINERVA, {"question": "?", "answer": " "}, "empty"),
    ],
)
def test_why_a_row_is_no_problem(tmp_path, table, row, why):
    with pytest.raises(ValueError, match=why):
        load(table, write(tmp_path / "rows.jsonl", row))


def test_a_question_that_comes_twice_has_two_ids(tmp_path):
    row = {"question": "What is 1+1?", "answer": "2"}
    problems = load(AMC, write(tmp_path / "rows.jsonl", row, {**row, "question": "What  is 1+1? "}, row))
    name = f"amc/{fingerprint(row['question'])}"
    assert [problem.problem_id for problem in problems] == [name, f"{name}-2", f"{name}-3"]


def test_golds_are_written_one_way(tmp_path):
    path = tmp_path / "rows.jsonl"
    for table, column, raw, gold in [
        (GSM8K, "question", "So 2.\n#### 1,234", "1234"),
        (GSM8K, "question", "Then #### 3 is wrong.\n#### -5", "-5"),
        (AIME, "problem", "025", "25"),
        (AIME, "problem", 25, "25"),
        (AIME, "problem", 25.0, "25"),
        (AIME, "problem", "000", "0"),
        (AIME, "problem", "336^\\circ", "336"),
        (AMC, "question", "27.0", "27"),
        (AMC, "question", -1.0, "-1"),
        (AMC, "question", "0.5", "0.5"),
        (MINERVA, "question", "4.5e33", "4.5e33"),
    ]:
        assert golds(load(table, write(path, {column: "?", "answer": raw}))) == [gold]


def test_a_list_whose_boxes_stand_in_sentences_is_one_answer(tmp_path):
    row = {"problem": "Find all values, separated by commas.", "solution": "First $\\boxed{1}$. Then there is $\\boxed{\\frac{2}{3}}$."}
    (problem,) = load(MATH, write(tmp_path / "rows.jsonl", row))
    assert problem.gold == "1, \\frac{2}{3}"
    row["problem"] = "Find the value."
    assert golds(load(MATH, tmp_path / "rows.jsonl")) == ["1, \\frac{2}{3}"]
    assert golds(load(MATH, write(tmp_path / "rows.jsonl", row))) == ["\\frac{2}{3}"]


def test_levels_and_subjects(tmp_path):
    rows = [
        {"problem": "1", "solution": "\\boxed{1}", "level": "Level 5", "type": "Counting & Probability"},
        {"problem": "2", "solution": "\\boxed{2}", "level": "Level ?", "type": "Geometry"},
        {"problem": "3", "solution": "\\boxed{3}", "level": 3, "subject": "Geometry"},
    ]
    path = str(write(tmp_path / "rows.jsonl", *rows))
    assert [problem.metadata.get("level") for problem in dataset("MATH", source=path)] == [5, None, 3]
    assert golds(dataset("MATH", source=path, subject="counting_and_probability")) == ["1"]
    assert golds(dataset("MATH", source=path, subject=["Geometry", "algebra"])) == ["2", "3"]
    assert golds(dataset("MATH", source=path, level=[3, 5], subject="Geometry")) == ["3"]
    with pytest.raises(ValueError, match="Prealgebra.*got 'Topology'"):
        dataset("MATH", source=path, subject="Topology")
    with pytest.raises(ValueError, match=r"expected problems with .*'level': 4.*level is among \[3, 5, None\]"):
        dataset("MATH", source=path, level=4)


def test_units_and_tolerances_of_olympiadbench(tmp_path):
    row = {"question": "How long?", "final_answer": ["$45$"], "unit": "minutes", "is_multiple_answer": False, "context": "A boat."}
    (problem,) = load(OLYMPIAD, write(tmp_path / "rows.jsonl", row))
    assert problem.prompt.startswith("A boat.\nHow long?\nUnit of the answer: minutes\n")
    for answer, reward in [("45", 1), ("45\\text{ minutes}", 1), ("45\\text{ hours}", 0)]:
        assert verify("olympiad", f"\\boxed{{{answer}}}", problem.gold, **problem.options).reward == reward
    row |= {"final_answer": ["$1$,$2$"], "unit": None, "is_multiple_answer": True, "error": "1e-1,1e-2"}
    (problem,) = load(OLYMPIAD, write(tmp_path / "rows.jsonl", row))
    assert "several answers" in problem.prompt and problem.options == {"precision": [0.1, 0.01]}


def test_folders_are_read_by_split(tmp_path):
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        for split in ("train", "test"):
            write(tmp_path / part / f"{split}.jsonl", {"problem": f"{part} {split}?", "solution": f"\\boxed{{{part}}}"})
    (tmp_path / "README.md").write_text("a card")
    assert golds(load(MATH, tmp_path)) == ["a", "b"]
    assert [problem.prompt[:7] for problem in load(MATH, tmp_path, split="test")] == ["a test?", "b test?"]
    with pytest.raises(ValueError, match="expected split among test, train, .*got 'validation'"):
        load(MATH, tmp_path, split="validation")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no .jsonl or .parquet"):
        load(MATH, tmp_path / "empty")


def test_parquet_and_tables_and_problems(tmp_path):
    datasets, parquet = pytest.importorskip("datasets"), pytest.importorskip("pyarrow.parquet")
    rows = [{"problem": "What is 1+1?", "solution": "\\boxed{2}"}]
    table = datasets.Dataset.from_list(rows)
    parquet.write_table(table.data.table, tmp_path / "rows.parquet")
    for source in (table, tmp_path / "rows.parquet"):
        problems = load(MATH, source)
        assert golds(problems) == ["2"] and problems.left_out == ()
    assert load(MATH, problems) is problems
    with pytest.raises(ValueError, match=r"choose one, as in source\['test'\]"):
        load(MATH, datasets.DatasetDict({"test": table}))


# ---- embedded problems


def all_embedded():
    tables = [table for table in TABLES.values() if table is not MATH500]  # whose embedded problems are those of MATH
    return [
        problem for table in tables for split in table.embedded for problem in load(table, "embedded", split=split, prompt_format="plain")
    ]


def test_embedded_problems():
    counts = {name: {split: len(load(table, "embedded", split=split)) for split in table.embedded} for name, table in TABLES.items()}
    assert counts == {
        "GSM8K": {"train": 16, "test": 12},
        "MATH": {"train": 21, "test": 14},
        "MATH500": {"test": 14},
        "AIME": {"train": 24},
        "Olympiad": {"train": 28},
        "AMC": {"test": 24},
        "Minerva": {"test": 24},
    }
    problems = [problem for split in ("train", "test") for problem in load(MATH, "embedded", split=split)]
    assert {problem.metadata["subject"] for problem in problems} == set(maths.MATH_SUBJECTS.values())
    assert {problem.metadata["level"] for problem in problems} == {1, 2, 3, 4, 5}
    assert {type(problem.options.get("precision")) for problem in load(OLYMPIAD, "embedded")} == {float, type(None)}
    texts = [
        problem.prompt
        for table in TABLES.values()
        if table is not MATH500
        for split in table.embedded
        for problem in load(table, "embedded", split=split)
    ]
    assert len(texts) == len(set(map(fingerprint, texts))) == 163


def test_calculator_marks_of_embedded_solutions_are_right():
    marks = []
    for split in ("train", "test"):
        with open(EMBEDDED / f"gsm8k_{split}.jsonl", encoding="utf-8") as file:
            marks += re.findall(r"<<([-+*/().\d]+)=(-?[\d.]+)>>", file.read())
    assert len(marks) > 60
    for expression, value in marks:
        assert verify("math", f"\\boxed{{{expression}}}", value).reward == 1, expression


# ---- real rows


FILES = [
    ("GSM8K", "gsm8k_test.jsonl", 1319),
    ("MATH", "hendrycks_math", 175),
    ("MATH", "hendrycks_math/algebra/test.jsonl", 25),
    ("MATH", "math500.jsonl", 500),
    ("MATH500", "math500.jsonl", 500),
    ("AIME", "aime24.jsonl", 30),
    ("AIME", "aime24_mathai.jsonl", 30),
    ("AIME", "aime24_maxwelljia.jsonl", 30),
    ("AIME", "aime25.jsonl", 30),
    ("AIME", "aime25_opencompass", 30),
    ("Olympiad", "olympiadbench_math_en.jsonl", 674),
    ("AMC", "amc23.jsonl", 40),
    ("AMC", "amc23_qwen_float.jsonl", 40),
    ("Minerva", "minerva.jsonl", 272),
]


@pytest.mark.parametrize("name, file, count", FILES)
def test_every_row_of_real_data_is_a_problem(test_data, name, file, count):
    problems = dataset(name, source=str(test_data / "data" / file))
    assert len(problems) == count and problems.left_out == ()
    check_dataset(problems, limit=count)
    assert len({problem.problem_id for problem in problems}) == count
    lines = {"think_answer": "<answer>%s</answer>", "gsm8k": "#### %s"}
    for problem in problems:
        for line in lines.values():
            assert verify(problem.task, line % problem.gold, problem.gold, mode="strict", **problem.options).reward == 1


def test_copies_of_one_data_set_agree(test_data):
    folder = test_data / "data"
    first = {problem.problem_id: problem.gold for problem in load(AIME, folder / "aime24.jsonl")}
    for copy in ("aime24_mathai.jsonl", "aime24_maxwelljia.jsonl"):
        problems = load(AIME, folder / copy, where={"year": 2024})
        assert sorted(golds(problems), key=int) == sorted(first.values(), key=int)
    assert {problem.problem_id: problem.gold for problem in load(AIME, folder / "aime24_mathai.jsonl")} == first
    assert golds(load(AMC, folder / "amc23.jsonl")) == golds(load(AMC, folder / "amc23_qwen_float.jsonl"))
    assert golds(load(AIME, folder / "aime25.jsonl"))[-3:] == golds(load(AIME, folder / "aime25_opencompass"))[-3:]


def test_quirks_of_real_rows(test_data, tmp_path):
    """Every answer that should be right is; for MATH test row 4060 the last box is not, and is no longer rewarded."""
    with open(test_data / "data" / "quirk_rows.jsonl", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if "true_answer" in row]
    assert len(rows) == 72
    for row in rows:
        (problem,) = load(GSM8K if row["dataset"] == "gsm8k" else MATH, write(tmp_path / "row.jsonl", row["row"]))
        answers = row["true_answer"] if isinstance(row["true_answer"], list) else [row["true_answer"]]
        for answer in answers:
            assert verify(problem.task, f"\\boxed{{{answer}}}", problem.gold, **problem.options).reward == 1, (row["index"], answer)
        if row["kind"] in ("several_boxed:wrong", "several_boxed:list"):
            assert verify(problem.task, f"\\boxed{{{row['last_boxed']}}}", problem.gold, **problem.options).reward == 0
    corrected = {fingerprint(row["row"]["problem"]) for row in rows if "problem" in row["row"]}
    assert set(maths.MATH_CORRECTIONS) <= corrected


def test_embedded_problems_are_in_no_data_set(test_data):
    own = {fingerprint(problem.prompt) for problem in all_embedded()}
    for name, file, _ in FILES:
        assert own.isdisjoint(fingerprint(p.prompt) for p in load(TABLES[name], test_data / "data" / file, prompt_format="plain"))


def test_boxed_gold_is_for_text_and_numbers():
    problem = load(GSM8K, "embedded")[0]
    assert boxed_gold(problem) == f"\\boxed{{{problem.gold}}}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert boxed_gold(type(problem)("x", "countdown", "?", {"numbers": [1], "target": 1})) is None
