"""Leaderboards from result lines made by hand: ranks, paired intervals, who competes, what scale matching changes, and the page."""

import json
import math
from html.parser import HTMLParser

import pytest

from setpo_agents.leaderboard import CONTROLS, boards, chosen_strengths, kendall_tau, parse_arm, rank_changes, read_boards
from setpo_agents.leaderboard_page import markdown, tables, write_leaderboard

HOSTILE = "</td><script>alert(1)</script>|$\\frac$&amp;"


def lines_of(arm, areas, label=None, split="test", **more):
    """One line a seed, with the same pass@k for all k: the area under it is that value."""
    training = {"shaping_ratio": 0.2, "seconds": {"generate": 0.5, "verify": 0.1, "credit": 0.1, "update": 0.4}}
    return [
        {"arm": arm, "label": label or arm.upper(), "seed": seed, "split": split, "n_samples": 4, "distinct@4": 2 * area, "pcmd": None}
        | {"training": training}
        | dict.fromkeys(("pass@1", "pass@2", "pass@4", "recovery", "entropy"), area)
        | more
        for seed, area in enumerate(areas)
    ]


LINES = [
    *lines_of("base", [0.9, 0.9], training={"shaping_ratio": 0.0, "seconds": {"credit": 0.0, "update": 1.0}}),
    *lines_of("grpo", [0.30, 0.32, 0.34]),
    *lines_of("gapo-x3", [0.40, 0.38, 0.42]),
    *lines_of("ips-x0.3", [0.50, 0.50, 0.50]),
    *lines_of("kl-x1", [0.35, 0.35, 0.35]),
    *lines_of("control_variate-x1", [0.33, 0.33, 0.33]),
    *lines_of("shuffled-x1", [0.8, 0.8, 0.8], label="control: shuffled"),
    *lines_of("gapo-matched", [0.52, 0.52, 0.52]),
    *lines_of("ips-matched", [0.31, 0.31, 0.31]),
    *lines_of("control_variate-matched", [0.45, 0.45, 0.45]),
    *lines_of("kl-x1", [0.99], split="validation"),
]


@pytest.mark.parametrize(
    "name, parts",
    [
        ("grpo", ("grpo", None, False)),
        ("gapo-x0.3", ("gapo", 0.3, False)),
        ("gapo-x1e-05", ("gapo", 1e-05, False)),
        ("gapo-matched", ("gapo", None, True)),
        ("rare-x2-x3", ("rare-x2", 3.0, False)),
        ("rare-x2-matched", ("rare-x2", None, True)),
        ("rare-matched-x1", ("rare-matched", 1.0, False)),
    ],
)
def test_names_of_arms(name, parts):
    assert parse_arm(name) == parts


def test_ranks_and_paired_intervals():
    rows = boards(LINES)["raw"]
    assert [(row.method, row.rank) for row in rows] == [
        ("base", None),
        ("shuffled", None),
        ("ips", 1),
        ("gapo", 2),
        ("kl", 3),
        ("control_variate", 4),  # a name is no reason not to compete
        ("grpo", None),
    ]
    by_method = {row.method: row for row in rows}
    gapo = by_method["gapo"]
    half = 4.302653 * 0.02 / math.sqrt(3)  # gaps .10, .06, .08; the t quantile of 2 degrees of freedom
    assert gapo.differences["auc"] == pytest.approx((0.08, 0.08 - half, 0.08 + half), abs=1e-6)
    assert gapo.differences["distinct@4"] == pytest.approx((0.16, 0.16 - 2 * half, 0.16 + 2 * half), abs=1e-6)
    assert (gapo.strength, gapo.seeds, gapo.shaping_ratio) == (3.0, 3, pytest.approx(0.2))
    assert gapo.values["auc"] == pytest.approx(0.4) and gapo.values["pcmd"] is None is gapo.differences["pcmd"]
    assert gapo.overhead == pytest.approx(0.1)  # of .1 s of credit beside 1 s
    assert set(by_method["grpo"].differences.values()) == set(by_method["base"].differences.values()) == {None}
    assert by_method["base"].seeds == 2


def test_seeds_that_grpo_lacks_are_not_compared():
    [row] = [row for row in boards([*lines_of("grpo", [0.3, 0.4]), *lines_of("ips-x1", [0.4, 0.6, 0.99])])["raw"] if row.method == "ips"]
    assert row.differences["auc"][0] == pytest.approx(0.15) and row.values["auc"] == pytest.approx((0.4 + 0.6 + 0.99) / 3)


def test_what_scale_matching_changes():
    both = boards(LINES)
    assert [(row.method, row.rank) for row in both["matched"]] == [
        ("base", None),
        ("gapo", 1),
        ("control_variate", 2),
        ("grpo", None),
        ("ips", 3),
    ]
    assert {row.strength for row in both["matched"]} == {None}
    changes = rank_changes(both["raw"], both["matched"])  # kl is on one board alone: the others are ranked without it
    assert changes == [("IPS-X0.3", 1, 3), ("GAPO-X3", 2, 1), ("CONTROL_VARIATE-X1", 3, 2)]
    assert kendall_tau(changes) == pytest.approx(-1 / 3)  # of three pairs, gapo and the last keep their order


def test_kendall_tau_by_hand():
    def order(*places):
        return [("", i, place) for i, place in enumerate(places, 1)]

    assert kendall_tau(order(1, 2, 3, 4)) == 1 and kendall_tau(order(4, 3, 2, 1)) == -1
    assert kendall_tau(order(2, 1, 3, 4)) == pytest.approx((5 - 1) / 6)
    assert math.isnan(kendall_tau(order(1))) and math.isnan(kendall_tau([]))


def test_strengths_are_chosen_on_validation():
    lines = [
        *lines_of("ips-x3", [0.6], split="validation"),
        *lines_of("ips-x0.3", [0.6], split="validation"),
        *lines_of("ips-x1", [0.5], split="validation"),
        *lines_of("ips-x1", [0.9]),  # test: must not be looked at
        *lines_of("setpo_z-x0.3", [0.1], split="validation"),
        *lines_of("setpo_z-x3", [0.2], split="validation"),
        *lines_of("grpo", [0.9], split="validation"),
    ]
    controls = dict.fromkeys(CONTROLS, 3.0)
    assert chosen_strengths(lines) == {"ips": 0.3, "setpo_z": 3.0, **controls}  # the weakest of equals
    assert chosen_strengths([]) == dict.fromkeys(CONTROLS, 1.0)
    bent = [*lines_of("ips-x1", [0.5], split="validation", **{"pass@2": 0.2}), *lines_of("ips-x3", [0.45], split="validation")]
    assert chosen_strengths(bent)["ips"] == 3.0  # area .35 against .45: all k count, not the ends


def test_a_method_counts_with_the_strength_that_is_chosen_now():
    """The controls ran beside other methods first, and again when SetPO was there to be dealt at its own strength."""
    lines = [*lines_of("grpo", [0.3]), *lines_of("shuffled-x1", [0.1]), *lines_of("shuffled-x3", [0.2])]
    lines += [*lines_of("setpo_z-x3", [0.5], split="validation"), *lines_of("setpo_z-x1", [0.4], split="validation")]
    assert [(row.method, row.strength, row.seeds) for row in boards(lines)["raw"]] == [("grpo", None, 1), ("shuffled", 3.0, 1)]


def write(folder, lines):
    folder.mkdir()
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)


def test_files_of_a_folder(tmp_path):
    hostile = [{**line, "label": HOSTILE} if line["arm"].startswith("ips") else line for line in LINES]
    write(tmp_path / "countdown", hostile)
    write(tmp_path / "one_$seed$", [line for line in LINES if line["seed"] == 0])
    (tmp_path / "unfinished").mkdir()
    with open(tmp_path / "countdown" / "results.jsonl", "a") as file:
        file.write('{"arm": "gapo-x3", "lab')  # a line that is being written
    paths = write_leaderboard(tmp_path)
    assert [path.name for path in paths] == ["leaderboard.md", "leaderboard.json", "leaderboard.png", "leaderboard.html"]
    text, stored, picture, source = (path.read_bytes() for path in paths)
    assert picture.startswith(b"\x89PNG")
    stored = json.loads(stored, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert set(stored) == {"countdown", "one_$seed$"}
    assert stored["countdown"]["raw"][3]["differences"]["auc"][0] == pytest.approx(0.08)
    assert stored["one_$seed$"]["raw"][3]["differences"]["auc"][1:] == [None, None]
    page = Page()
    page.feed(source.decode())
    assert "script" not in {tag for tag, _ in page.tags} and HOSTILE in page.text
    assert all(value.startswith("data:image/png;base64,") for _, has in page.tags for key, value in has.items() if key in ("src", "href"))
    rows = [line for line in text.decode().splitlines() if line.startswith("| ")]
    heads = {"rank": 14, "raw": 4}
    for row in rows:
        width = row.replace("\\|", "").count("|") - 1
        assert width in heads.values(), row
    assert "| 2 | GAPO-X3 | 3 | 0.400 | 0.400 | 0.400 | 0.800 | - | 0.400 | 0.400 | +0.080 [+0.030, +0.130] | 0.20 | 10.0% | 3 |" in rows
    assert "| 2 | GAPO-X3 | 3 | 0.400 | 0.400 | 0.400 | 0.800 | - | 0.400 | 0.400 | +0.100 | 0.20 | 10.0% | 1 |" in rows  # one seed
    assert "| 2 | GAPO-X3 | 1 | +1 |" in rows and "tau between the rankings -0.33" in text.decode()


def test_one_board_alone_has_no_rankings_side_by_side():
    both = boards([*lines_of("grpo", [0.3, 0.4]), *lines_of("kl-x1", [0.35, 0.4])])
    assert [title for title, _, _ in tables({"here": both})] == [
        "here, raw: strength chosen on validation",
        "here, scale-matched: the same RMS of shaping for all",
    ]
    assert "nan" not in markdown({"here": both})


def test_a_folder_without_test_results_is_named(tmp_path):
    write(tmp_path / "countdown", lines_of("kl-x1", [0.4], split="validation"))
    with pytest.raises(ValueError, match="expected finished runs in .*found none: run 'setpo bench' with --out"):
        read_boards(tmp_path)
