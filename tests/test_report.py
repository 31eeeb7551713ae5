"""The report of a study folder: the table fits a terminal, figures hold the lines they should, the page holds data only."""

import base64
import json
import re
import shutil

import numpy as np
import pytest
from report_folder import HOSTILE, groups_file, make_folder

pytest.importorskip("matplotlib", reason="the report needs matplotlib (the 'report' extra)")

from setpo_agents import embedding_map, figures, report, results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("study"))


def page_data(path):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.S)[1])


# --- reading and table ----------------------------------------------------------------------------------------------


def test_table_fits_80_columns_and_pairs_by_seed():
    def row(arm, label, seed, p):
        scores = {"pass@1": p, "pass@8": p, "pass@64": p, "distinct@64": 9 * p, "entropy": p}
        return {"arm": arm, "label": label, "seed": seed, "split": "test", "step": 9, **scores}

    rows = [row("grpo", "GRPO", seed, p) for seed, p in enumerate((0.1, 0.2, 0.3))]
    rows += [
        row("setpo_grpo-0.1", "SetPO+GRPO with a label too long for a terminal", seed, p) for seed, p in ((2, 0.44), (0, 0.20), (1, 0.32))
    ]
    text = results.format_table(rows)
    assert max(map(len, text.splitlines())) <= 80
    # differences .10 .12 .14: mean .12, half interval 4.3027 * .02 / sqrt(3)
    assert text.count("+0.120 ±0.050") == 3
    assert re.search(r"GRPO +0.200 +0.200 +0.200 +1.800 +0.200 +3\n", text)


def test_table_of_one_seed_has_no_interval(folder):
    text = results.format_table([row for row in results.read_results(folder).rows if row["seed"] == 0])
    difference = text.split("minus GRPO")[1]
    assert re.search(r"SetPO\+GRPO +[+-]0\.\d{3} ", difference) and "±" not in difference


def test_headline_takes_the_test_split_and_the_last_step(folder):
    read = results.read_results(folder)
    assert read.split == "test" and [arm.label for arm in read.arms] == ["GRPO", "SetPO+GRPO"] and read.base.label == "base model"
    rows = [{"arm": "a", "label": "A", "seed": 0, "split": "validation", "step": step, "pass@1": step} for step in (1, 3, 2)]
    assert [row["step"] for row in results.headline(rows)] == [3]


def test_arms_that_share_a_label_are_told_apart():
    common = {"label": "SetPO+GRPO", "seed": 0, "split": "validation", "step": 1, "pass@1": 0.5}
    rows = [{"arm": f"setpo_grpo-{coefficient}", **common} for coefficient in (0.1, 0.2)]
    assert [row["label"] for row in results.headline(rows)] == ["SetPO+GRPO 0.1", "SetPO+GRPO 0.2"]


@pytest.mark.parametrize(
    ("arm", "other"),
    [("setpo_grpo-0.1", "grpo"), ("setpo_gspo-0.1", "gspo"), ("kl-0.05", "grpo"), ("grpo", None), ("gspo", None), ("base", None)],
)
def test_baseline_has_the_same_optimiser(arm, other):
    assert results.baseline(arm, ["base", "grpo", "gspo", arm]) == other


def test_an_empty_folder_says_which_command_fills_it(tmp_path):
    with pytest.raises(ValueError, match="setpo demo"):
        report.write_report(tmp_path)


# --- figures --------------------------------------------------------------------------------------------------------


def test_pass_at_k_has_one_line_an_arm_and_a_dashed_base(folder):
    pictures, notes = report.draw(results.read_results(folder), {"GRPO": "#0072B2", "SetPO+GRPO": "#D55E00"})
    (axes,) = pictures["pass_at_k"].axes
    assert axes.get_xscale() == "log"
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-", "--"]
    assert [line.get_color() for line in axes.lines[:2]] == ["#0072B2", "#D55E00"]
    assert list(axes.lines[0].get_xdata()) == [1, 2, 4, 8]
    assert len(axes.collections) == 2  # the bands of two seeds
    assert {text.get_text() for text in axes.texts} == {"GRPO", "SetPO+GRPO", "base model"}
    assert notes == []


def test_arms_on_gspo_have_a_panel_of_their_own_with_the_same_base():
    curve = (np.array([1, 2]), np.array([[0.2, 0.4]]))
    high = (np.array([1, 2]), np.array([[0.5, 0.9]]))
    figure = figures.pass_at_k_figure(
        [{"GRPO": curve, "GRPO+KL": curve}, {"GSPO": high}], ("base model", curve), figures.arm_colors(["GRPO", "GRPO+KL", "GSPO"])
    )
    left, right = figure.axes
    assert [len(axes.lines) for axes in (left, right)] == [3, 2]
    assert left.get_ylim() == right.get_ylim()
    assert len(set(figures.arm_colors([str(i) for i in range(10)]).values())) == 10


def test_diversity_draws_the_shaping_ratio_only_where_there_is_one(folder):
    pictures, _ = report.draw(results.read_results(folder), {"GRPO": "b", "SetPO+GRPO": "r"})
    panels = {axes.get_title(loc="left"): axes for axes in pictures["diversity"].axes}
    counts = [len(panels[title].lines) for title in figures.PANELS.values()]
    assert counts == [4, 4, 4, 2]  # raw and smooth, by arm
    assert {text.get_text() for text in panels[figures.PANELS["shaping_ratio"]].texts} == {"SetPO+GRPO"}


def test_embedding_map_of_rollouts_without_any_mode_is_empty_not_an_error():
    nothing = embedding_map.MapPanel(np.zeros((0, 2)), np.zeros(0, int), np.zeros(0, bool), 4)
    figure = embedding_map.embedding_map_figure([embedding_map.MapProblem("p", {"GRPO": [nothing]}, np.zeros((0, 2)))], ["step 1"], {})
    assert "0 of 4 correct, 0 distinct" in [text.get_text() for axes in figure.axes for text in axes.texts]


def test_embedding_map_shares_coordinates_between_panels(folder):
    problems, columns, _ = embedding_map.embedding_map(results.read_results(folder))
    assert columns == ["base model", "step 2", "step 4"]
    assert len(problems) == 2 and list(problems[0].rows) == ["GRPO", "SetPO+GRPO"]
    narrow, wide = (problems[0].rows[label][-1] for label in ("GRPO", "SetPO+GRPO"))
    assert wide.correct.sum() > narrow.correct.sum() and wide.n_rollouts == 8
    shared = {tuple(point) for point in narrow.points} & {tuple(point) for point in wide.points}
    assert shared  # the same mode lies at the same place in both
    assert {tuple(p) for p in wide.points[wide.correct]} <= {tuple(p) for p in problems[0].rings}
    figure = embedding_map.embedding_map_figure(problems, columns, {})
    assert len(figure.axes) == 4 * 3


def test_pca_keeps_distances_in_the_plane():
    plane = np.random.default_rng(0).normal(size=(9, 2)) @ np.random.default_rng(1).normal(size=(2, 7))
    points, share = embedding_map.pca(plane)
    distances = [np.linalg.norm(x[:, None] - x, axis=-1) for x in (plane, points)]
    np.testing.assert_allclose(*distances, atol=1e-12)
    assert share == pytest.approx(1)
    assert embedding_map.pca(np.ones((3, 4)))[0].tolist() == [[0, 0]] * 3


def test_labels_are_spread_without_overlap_and_stay_in_order():
    wanted = np.array([0.0, 0.1, 0.2, 5.0, 5.0, 9.9])
    placed = figures.spread(wanted, 1.0, 0.0, 10.0)
    assert (np.diff(placed) >= 1 - 1e-9).all() and placed.min() >= 0 and placed.max() <= 10
    assert figures.spread(np.array([1.0, 5.0]), 1.0, 0, 10).tolist() == [1, 5]


def test_band_is_the_range_of_two_seeds_and_an_interval_from_three_on():
    two = figures.band(np.array([[1.0], [3.0]]))
    assert [float(x[0]) for x in two] == [2, 1, 3]
    mean, low, high = figures.band(np.array([[1.0], [2.0], [3.0]]))
    assert mean[0] == 2
    assert [high[0] - 2, 2 - low[0]] == pytest.approx([4.3027 / 3**0.5] * 2, abs=1e-4)


# --- the page -------------------------------------------------------------------------------------------------------


def test_write_report(folder):
    paths = report.write_report(folder)
    assert [path.name for path in paths] == ["pass_at_k.png", "diversity.png", "embedding_map.png", "table.txt", "report.html"]
    for path in paths[:3]:
        assert path.read_bytes().startswith(b"\x89PNG\r\n") and path.stat().st_size > 10_000
    data = page_data(paths[-1])
    assert [arm["label"] for arm in data["arms"]] == ["base model", "GRPO", "SetPO+GRPO"]
    assert [file["name"] for file in data["arms"][1]["files"]] == ["validation, step 2", "validation, step 4", "test, step 4"]
    assert [base64.b64decode(figure["src"].split(",")[1])[:4] for figure in data["figures"]] == [b"\x89PNG"] * 3


def test_page_keeps_hostile_completions_as_data(folder):
    report.write_report(folder)
    text = (folder / "report.html").read_text("utf-8")
    assert len(re.findall("<script", text)) == 2 and len(re.findall("</script", text)) == 2  # the data and the code
    assert "onerror=alert" in text and "<img" not in text  # the completion is there, its markup is not
    groups = [group for arm in page_data(folder / "report.html")["arms"] for file in arm["files"] for group in file["groups"]]
    texts = {record["text"] for group in groups for record in group["records"]}
    assert HOSTILE in texts
    assert not re.findall(r"""(?:src|href)=["']?https?:|@import|url\(""", text)


def test_page_similarities_are_those_of_the_stored_kernel(folder):
    report.write_report(folder)
    group = page_data(folder / "report.html")["arms"][0]["files"][0]["groups"][0]
    n = len(group["records"])
    similarity = np.frombuffer(base64.b64decode(group["similarity"]), np.uint8).reshape(n, n) / 100
    by_text = {record["text"]: i for i, record in enumerate(group["records"])}
    assert (similarity == similarity.T).all() and (np.diag(similarity) == 1).all()
    assert similarity[by_text["1+2+3+4"], by_text["4+3+2+1"]] == 1  # one mode
    assert 0 < similarity[by_text["3*4-2*1"], by_text["2*3+4*1"]] < 1
    assert [len(group[key]) for key in ("members", "credits")] == [8, 8]


def test_page_is_bounded(tmp_path):
    folder = make_folder(tmp_path, seeds=1)
    assert len(page_data(report.write_report(folder, problems_per_file=1)[-1])["arms"][0]["files"][0]["groups"]) == 1
    data = page_data(report.write_report(folder, max_bytes=1000)[-1])  # impossible: falls back to one problem a file, and says so
    assert len(data["arms"][0]["files"][0]["groups"]) == 1 and "first 1 problems" in data["facts"]


def test_missing_pieces_are_left_out_and_named(tmp_path):
    folder = make_folder(tmp_path, seeds=1, base=False)
    for run in (folder / "runs").iterdir():
        shutil.rmtree(run / "eval")
        (run / "metrics.jsonl").unlink()
    paths = report.write_report(folder)
    assert [path.name for path in paths] == ["pass_at_k.png", "table.txt", "report.html"]
    data = page_data(paths[-1])
    assert data["arms"] == [] and len(data["notes"]) == 3 and all("setpo " in note for note in data["notes"])


def test_a_malformed_line_is_named(tmp_path):
    folder = make_folder(tmp_path, seeds=1)
    path = folder / "runs/grpo-seed0/metrics.jsonl"
    path.write_text(path.read_text() + "{\n")
    with pytest.raises(ValueError, match=r"metrics.jsonl, line 5"):
        report.write_report(folder)


def test_one_arm_without_shaper_still_has_a_map_and_a_page(tmp_path):
    folder = make_folder(tmp_path, seeds=1, arms=(("grpo", "GRPO"),))
    assert [path.name for path in report.write_report(folder)][2] == "embedding_map.png"
    assert page_data(folder / "report.html")["arms"][1]["kernel"] == "cosine_clamp, ngram"


def test_groups_are_compared_under_the_kernel_of_the_shuffled_shaper(tmp_path):
    folder = make_folder(tmp_path, seeds=1, arms=(("shuffled-0.1", "shuffled credit"),))
    config = {"shaper": "shuffled", "shaper_kwargs": {"of": "setpo", "of_kwargs": {"kernel": "equality_key"}}}
    (folder / "runs/shuffled-0.1-seed0/config.json").write_text(json.dumps(config))
    groups_file(folder / "runs/shuffled-0.1-seed0/eval/test-000004.groups.jsonl", 8, True)
    assert page_data(report.write_report(folder)[-1])["arms"][1]["kernel"] == "equality_key"
