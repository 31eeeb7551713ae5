"""A group as text for people."""

import unicodedata

import gymnasium as gym
import pytest

import setpo_envs  # noqa: F401 (registers the environments)
from setpo_envs import Completion, verify_groups
from setpo_envs.datasets import Problem
from setpo_envs.render import cells, render_group, wrapped
from setpo_envs.shapers import make_shaper

PROBLEM = Problem("p", "countdown", "1,2=3>", {"numbers": [1, 2], "target": 3})


@pytest.mark.parametrize(
    "text, expected",
    [("", 0), ("abc", 3), ("数独", 4), ("é", 1), ("e\N{COMBINING ACUTE ACCENT}", 1), ("\N{SLIGHTLY SMILING FACE}", 2), ("ｱ", 1), ("Ａ", 2)],
)
def test_cells(text, expected):
    assert cells(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a word and another " * 20,
        "数独" * 100,
        "mixed 数 独 text " * 30,
        "x" * 500,
        "é\N{COMBINING ACUTE ACCENT}" * 200,
        "    indented " + "y" * 90,
        "a" * 75 + "数" * 3,
        " " * 300 + "end",
    ],
)
def test_no_line_is_wider_than_80_cells_and_no_letter_is_lost(text):
    shown = wrapped(text, "    ")
    lines = shown.split("\n")
    assert max(map(cells, lines)) <= 80 and all(line.startswith("    ") or not line for line in lines)
    assert shown.replace(" ", "").replace("\n", "") == text.replace(" ", "")
    if not text.startswith(" "):
        assert min(map(cells, lines[:-1])) > 40  # lines are filled


def test_short_lines_stay_as_they_are():
    assert wrapped("def f():\n    return 1\n\nend", "  ") == "  def f():\n      return 1\n\n  end"


def test_a_long_text_is_cut_with_a_count():
    lines = wrapped("\n".join(map(str, range(100))), "  ", max_lines=6).split("\n")
    assert lines == ["  0", "  1", "  2", "  3", "  4", "  ... (95 more lines)"]


def test_nothing_reaches_the_terminal_as_a_command():
    hostile = "\x1b[2Jhidden\r\x07\N{RIGHT-TO-LEFT OVERRIDE}\ttab \x9b31m"
    shown = render_group(verify_groups([PROBLEM], [[hostile, "1+2", "<answer>\x1b]0;title\x07</answer>"]]), 0)
    assert not [c for c in shown if c != "\n" and unicodedata.category(c)[0] == "C"]
    assert "hidden" in shown


def test_a_million_characters_render_at_once():
    shown = render_group(verify_groups([PROBLEM], [["x" * 10**6, "数" * 10**5, "\n" * 10**5]]), 0)
    assert len(shown) < 3000 and shown.count("more lines") == 3


def test_what_a_group_looks_like():
    group = [Completion("1+2", n_tokens=100), Completion("cut", truncated=True)]
    groups = verify_groups([PROBLEM], [group], shaper=make_shaper("overlong", max_tokens=100, cache_tokens=40))
    assert render_group(groups, 0).split("\n") == [
        "reward 0.500, diversity +0.000",
        "  1 correct   reward 1 shaped 0  credit +0.0000  mode 0: 1+2",
        "    1+2",
        "  2 truncated reward 0 shaped -1  credit +0.0000",
        "    cut",
    ]


def test_render_before_reset_and_without_a_mode():
    env = gym.make("setpo/Countdown-v0", render_mode="ansi").unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        env.render()
    silent = gym.make("setpo/Countdown-v0").unwrapped
    silent.reset()
    with pytest.warns(UserWarning, match="render_mode='ansi'"):
        assert silent.render() is None
