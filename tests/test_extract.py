"""The one answer extractor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpo_verifiers import extract


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>1+2</answer>", "1+2"),
        ("<answer>\n 1\n+2 \n</answer> and more", "1\n+2"),
        ("<answer>9</answer> wrong, so <answer>7</answer>", "7"),
        ("<answer>9 <answer>7</answer>", "7"),
        ("<answer>7</answer> 8</answer>", "7"),
        ("<answer>9</answer> <answer>7", None),
        ("<answer>7", None),
        ("<answer></answer>", None),
        ("<answer> \n </answer>", None),
        ("\\boxed{5} <answer>7</answer>", "7"),
        ("<answer>7</answer> \\boxed{5}", "7"),
        ("<answer>7 \\boxed{5}", None),
        # boxes
        ("so \\boxed{1+2}.", "1+2"),
        ("\\fbox{7}", "7"),
        ("\\boxed{1} then \\boxed{2}", "2"),
        ("\\boxed{1} then \\fbox{2}", "2"),
        ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{\\left\\{ 1 \\right.}", "\\left\\{ 1 \\right."),
        ("\\boxed{\\boxed{3}}", "3"),
        ("\\boxed{1} then \\boxed{2", None),
        ("\\boxed{\\frac{1}{2}", None),
        ("\\boxed{}", None),
        ("\\boxed{7}<|im_end|>", "7"),
        ("\\boxed{7}</answer>", "7"),
        # a box that fills a tag
        ("<answer>\\boxed{1+2}</answer>", "1+2"),
        ("<answer> $\\boxed{1+2}$. </answer>", "1+2"),
        ("<answer>\\[ \\fbox{ 7 } \\]</answer>", "7"),
        ("<answer>it is \\boxed{7}</answer>", "it is \\boxed{7}"),
        ("<answer>\\boxed{7} or 8</answer>", "\\boxed{7} or 8"),
        ("<answer>\\boxed{1} \\boxed{2}</answer>", "\\boxed{1} \\boxed{2}"),
        ("<answer>\\boxed{7</answer>", "\\boxed{7"),
        # thinking
        ("<think>\\boxed{1}</think> \\boxed{2}", "2"),
        ("<think><answer>1</answer></think>", None),
        ("<think><answer>1</answer>", None),
        ("<answer>1</answer> <think> hm", None),
        ("<think>a</think><think>b <answer>1</answer>", None),
        ("work</think><answer>1</answer>", "1"),
        ("<think>a</think>b</think><answer>1</answer>", "1"),
        ("<think>a</think><answer>1</answer></think>", None),
    ],
)
def test_with_marker_both_modes_agree(text, answer):
    assert extract(text, mode="strict") == answer
    assert extract(text, mode="lenient") == answer  # never falls back to something that a marker or a thinking block rules out


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" 1+2\n", "1+2"),
        ("<think>\\boxed{1}</think> 1+2", "1+2"),
        ("the answer is 7", "the answer is 7"),
        ("", None),
        (" \n", None),
        ("<answer>1</think></answer>", "</answer>"),
        ("<think>1+2", None),
    ],
)
def test_without_marker(text, answer):
    assert extract(text) == answer
    assert extract(text, mode="strict") is None


LONG = 10**6


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>7</answer>" + "blah " * (LONG // 5), "7"),
        ("x" * LONG + "\\boxed{7}", "7"),
        ("\\boxed{7}" + " blah" * (LONG // 5), "7"),
        ("\\boxed{" + " " * LONG + "7}", "7"),
        ("</think>" * (LONG // 8) + "\\boxed{7}", "7"),
        ("<think>" + "x" * LONG + "\\boxed{7}", None),  # the opening tag is a million characters back
        ("<answer>" + "x" * LONG + "\\boxed{7}", None),
        ("\\boxed{" * (LONG // 7), None),
        ("\\boxed{" + "{" * LONG, None),
        ("\\boxed{" + "{}" * (LONG // 2) + "}", None),
        ("\\boxed{" + "\\{" * (LONG // 2) + "}", None),
        ("<answer>" * (LONG // 8), None),
        ("\n" * LONG + "7", "7"),
    ],
)
def test_position_and_length_do_not_matter(text, answer):
    assert extract(text) == answer


@pytest.mark.parametrize("text", [None, 7, b"<answer>7</answer>", ["7"], {"content": "7"}])
def test_only_text(text):
    with pytest.raises(TypeError, match="expected the completion as a str"):
        extract(text)


def test_unknown_mode():
    with pytest.raises(ValueError, match="'lenient' or 'strict', got 'loose'"):
        extract("7", mode="loose")


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "\\fbox{", "{", "}", "\\", "$", "7", " "]), max_size=12
    ).map("".join)
)
def test_never_raises_and_answers_are_clean(text):
    lenient, strict = extract(text), extract(text, mode="strict")
    assert strict in (None, lenient)
    if lenient is not None:
        assert lenient == lenient.strip() != ""
        assert lenient in text.rpartition("</think>")[2]
