"""Mathematics: what counts as the same answer, rule by rule."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from setpo_verifiers import Status, verify

# gold, answer (put into a box), accepted
RULES = [
    # numbers
    ("5", "5.0", True),
    ("5", "05", True),
    ("1/4", "2/8", True),
    ("0.25", "\\frac14", True),
    ("\\frac{17}{5}", "3\\frac{2}{5}", True),
    ("\\frac{17}{5}", "3 2/5", True),
    ("21", "2 1", False),
    ("9007199254740995", "9007199254740996", False),
    ("2500", "2.5 \\times 10^{3}", True),
    ("0.0007", "7e-4", True),
    ("6", "4.000+2", True),
    ("\\frac{3}{8}", "⅜", True),
    ("7", "７", True),
    ("7", "⁷", False),
    ("7", "7!", False),
    ("24", "4!", True),
    ("6", "6 \\neq 7", False),
    ("3", "7/0", False),
    # thousands and European decimals
    ("45678", "45,678", True),
    ("45678", "45{,}678", True),
    ("45678", "45\\,678", True),
    ("45678", "45 678", True),
    ("45", "4,5", False),
    ("2.345", "2,345", False),
    ("2345.67", "2.345,67", True),
    ("12.5", "12,5", True),
    # decimals for exact values
    ("\\frac{1}{6}", "0.1667", True),
    ("\\frac{1}{6}", "0.1666", True),
    ("\\frac{1}{6}", "0.167", False),
    ("\\frac{1}{6}", "0.1\\overline{6}", True),
    ("\\frac{5}{9}", "0.555...", True),
    ("\\sqrt{3}", "1.7321", True),
    ("\\sqrt{3}", "1.7330", False),
    ("8", "7.999999999", False),
    ("66.7", "\\frac{200}{3}", True),
    ("2.72", "e", True),
    # percent, units, money, degrees
    ("35\\%", "35", True),
    ("35\\%", "0.35", True),
    ("35\\%", "3500", False),
    ("0.35", "35 percent", True),
    ("12 cm", "12", True),
    ("12", "12 \\text{ cm}", True),
    ("12 cm", "12 \\text{ m}", False),
    ("12 \\text{ cm}^2", "12 \\text{ cm}^3", False),
    ("12 \\text{ centimeters}", "12 cm", True),
    ("12m", "12", False),
    ("8", "8 boxes", True),
    ("8", "8 or 9", False),
    ("80", "\\$80", True),
    ("30^\\circ", "30", True),
    ("30^\\circ", "\\frac{\\pi}{6}", False),
    ("\\frac{\\sqrt{3}}{2}", "\\sin 60^\\circ", True),
    ("7", "7^{\\text{th}}", True),
    # algebra
    ("(x+2)^2", "x^2+4x+4", True),
    ("(x+2)^2", "x^2+4", False),
    ("\\sqrt{12}", "2\\sqrt3", True),
    ("\\ln 9", "2\\ln 3", True),
    ("\\frac{x^2-4}{x-2}", "x+2", True),
    ("3x", "3y", False),
    ("x", "X", False),
    ("2+5i", "5i+2", True),
    ("2+5i", "2-5i", False),
    ("|x|", "x", False),
    ("\\cos^2 t", "1-\\sin^2 t", True),
    ("\\binom{6}{2}", "15", True),
    ("15", "\\sum_{k=1}^{5} k", True),
    ("3^{200}", "9^{100}", True),
    ("3^{200}", "3^{200}+1", False),
    ("2a/3", "\\frac{2}{3}a", True),
    # equations, inequalities, intervals
    ("x=7", "7", True),
    ("7", "x = 7", True),
    ("x=7", "y=7", False),
    ("x+y=4", "2x+2y=8", True),
    ("x+y=4", "4", False),
    ("f(x)=3x", "f(t)=3t", True),
    ("y'+3y=0", "y^{\\prime}=-3y", True),
    ("y^{\\prime}+\\frac{r}{V}y-rc=0", "0", False),
    ("\\dot{x}+kx=0", "0", False),
    ("\\sin t+1=0", "0", False),
    ("\\angle ABC=40", "40", True),
    ("3x", "f'(x)=3x", True),
    ("y=3x-1", "3x-1", True),
    ("3=5a+b", "5a+b", False),
    ("(2,6)", "2<x<6", True),
    ("2<x\\le 6", "x\\in(2,6]", True),
    ("(2,6)", "[2,6]", False),
    ("[2,6)", "2<x<6", False),
    ("x \\ge 3", "[3,\\infty)", True),
    ("x\\neq 2", "(-\\infty,2)\\cup(2,\\infty)", True),
    ("[0,2]\\cup[1,3]", "[0,3]", True),
    ("x \\le 2", "-x \\ge -2", True),
    ("(6,2)", "(5,3)", False),
    ("(6,2),(7,2)", "(6,2),(7,2),(7,3)", False),
    ("[6,2]", "1<x<0", False),
    ("(6,2)", "(0,1)\\cap(2,3)", False),
    ("[6,6]", "x=6", False),
    # several values
    ("3, 8", "8, 3", True),
    ("3, 8", "8", False),
    ("3", "3, 8", False),
    ("3 \\text{ and } 8", "\\{8, 3\\}", True),
    ("(3, 8)", "(8, 3)", False),
    ("(3,8)", "3,8", True),
    ("[3,8]", "3,8", False),
    ("\\{3,8\\}", "(3,8)", False),
    ("\\{3\\}", "3", True),
    ("-2,-2", "-2", True),
    ("-2,-2", "-2, 2", False),
    ("(-2,-2)", "-2,-2", True),
    ("(-2,-2)", "-2", False),
    ("\\{3,3\\}", "\\{3\\}", True),
    ("\\sqrt{2}", "1.4142, 1.4143", False),
    ("(1,5),(2,6)", "(2,6),(1,5)", True),
    ("2\\pm\\sqrt5", "2+\\sqrt5, 2-\\sqrt5", True),
    ("2\\pm\\sqrt5", "2+\\sqrt5", False),
    ("(4,9)", "x=4, y=9", True),
    ("n=2,5", "2,5", True),
    ("\\emptyset", "0", False),
    # matrices, bases, ratios, text, letters
    ("\\begin{pmatrix}1&2\\\\0&\\frac12\\end{pmatrix}", "\\begin{bmatrix}1&2\\\\0&0.5\\end{bmatrix}", True),
    ("\\begin{pmatrix}1&2\\\\0&4\\end{pmatrix}", "\\begin{pmatrix}1&0\\\\2&4\\end{pmatrix}", False),
    ("121_3", "121_{3}", True),
    ("121_3", "121_4", False),
    ("121_3", "16", False),
    ("121_3", "121", True),
    ("2:5", "\\frac25", True),
    ("9:45", "9:45 \\text{ p.m.}", True),
    ("\\text{red}", "Red", True),
    ("\\text{prism}", "prisms", False),
    ("\\text{yes}", "\\text{yes or no}", False),
    ("\\text{(B)}", "b)", True),
    ("B", "A, B", False),
    ("no picture", "picture", False),
    # hostile
    ("5", "\\phantom{5}", False),
    ("5", "5 if True else 6", False),
    ("5", "__import__('os').getpid() or 5", False),
    ("5", "5\x00", False),
    ("2", "9^{9^{9^{9}}}", False),
    ("2", "((7!)!)!", False),
    ("8^{8^{8^{8}}}", "8^{8^{8^{8}}}", True),
    ("8^{8^{8^{8}}}", "8^{8^{8^{7}}}", False),
]


@pytest.mark.parametrize(("gold", "answer", "accepted"), RULES)
def test_rule(gold, answer, accepted):
    verdict = verify("math", f"\\boxed{{{answer}}}", gold)
    assert (verdict.reward == 1.0) is accepted, verdict
    assert verdict.status in ((Status.CORRECT,) if accepted else (Status.WRONG, Status.NO_ANSWER))


DECIMAL_RULE = {"0.35", "66.7", "2.72", "12.5", "0.25", "\\frac{1}{6}", "\\sqrt{3}", "2.345", "2345.67"}


@pytest.mark.parametrize(("gold", "answer", "accepted"), [rule for rule in RULES if rule[0] not in DECIMAL_RULE])
def test_equality_is_symmetric(gold, answer, accepted):
    if "\x00" not in answer and "phantom" not in answer:
        assert (verify("math", f"\\boxed{{{gold}}}", answer).reward == 1.0) is accepted


@pytest.mark.parametrize(
    ("task", "completion", "gold", "lenient", "strict"),
    [
        ("math", "The answer is 17.", "17", True, False),
        ("math", "so it costs \\boxed{17} in all<|im_end|>", "17", True, True),
        ("math", "\\boxed{16}, no: \\boxed{17}", "17", True, True),
        ("math", "\\boxed{16} or \\boxed{17}", "17", False, False),
        ("math", "\\boxed{16} and \\boxed{17}", "16, 17", True, True),
        ("math", "<think>\\boxed{17}</think> unsure", "17", False, False),
        ("math", "<think>\\boxed{16}</think> \\boxed{17}", "17", True, True),
        ("math", "\\boxed{17} <think> wait", "17", False, False),
        ("math", "\\boxed{17", "17", False, False),
        ("math", "<think>so it is 17 \\end{think}\n<answer>17</answer>", "17", False, False),
        ("math", "<answer> \\boxed{17}", "17", True, True),
        ("math", "<answer> 17", "17", False, False),
        ("math", "The question says 17 birds were seen.", "17", False, False),
        ("gsm8k", "He has 5+6=11 cards.\n#### 11", "11", True, True),
        ("gsm8k", "#### 11\n\nQuestion: next?\n#### 12", "11", True, True),
        ("gsm8k", "5 and 6 make 11 cards.", "11", True, False),
        ("gsm8k", "it is 111", "11", False, False),
        ("aime", "<answer>073</answer>", "73", True, True),
    ],
)
def test_extraction(task, completion, gold, lenient, strict):
    assert (verify(task, completion, gold).reward == 1.0) is lenient
    assert (verify(task, completion, gold, mode="strict").reward == 1.0) is strict


def test_precision_is_an_absolute_tolerance():
    assert verify("olympiad", "\\boxed{2.05}", "2", precision=0.1).reward == 1.0
    assert verify("olympiad", "\\boxed{2.05}", "2", precision=0.01).reward == 0.0
    assert verify("olympiad", "\\boxed{4.9, 2.1}", "2, 5", precision=[0.2, 0.2]).reward == 1.0


@pytest.mark.parametrize("gold", ["", "  ", "\\boxed{}", None, [], True])
def test_empty_gold_is_an_error(gold):
    with pytest.raises(ValueError, match="expected a gold answer"):
        verify("math", "\\boxed{1}", gold)


@pytest.mark.parametrize(
    "completion",
    [None, True, 1, float("nan"), float("inf"), b"\\boxed{1}", bytearray(b"1"), ["\\boxed{1}"], {"content": "\\boxed{1}"}, object()],
    ids=lambda value: type(value).__name__,
)
def test_completion_must_be_text(completion):
    with pytest.raises(TypeError):
        verify("math", completion, "1")


def test_mode_key_is_the_value():
    def keys(*answers):
        return {verify("math", f"\\boxed{{{answer}}}", "1").mode_key for answer in answers}

    assert len(keys("\\frac12", "0.5", "2/4", "x = 1/2")) == 1
    assert len(keys("\\sqrt8", "2\\sqrt{2}")) == 1
    assert len(keys("1,2", "\\{2,1\\}")) == 1
    assert len(keys("(1,2)", "(2,1)", "x+1", "x+2", "\\sqrt2", "\\sqrt3")) == 6


def test_in_a_thread():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(verify, "math", "\\boxed{\\frac{1}{8}}", "0.125").result().reward == 1.0


def test_import_is_light():
    code = "import sys, setpo_verifiers; print(any(m in sys.modules for m in ('sympy', 'math_verify', 'latex2sympy2_extended', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
