"""Parser, exact values and the normal form that defines a mode."""

import ast
import operator
import random
from collections import defaultdict
from fractions import Fraction

import pytest
from expression_trees import all_trees, tree_key
from hypothesis import given
from hypothesis import strategies as st

from setpo_verifiers.expressions import (
    MAX_DEPTH,
    MAX_LENGTH,
    ExpressionError,
    features,
    literals,
    mode_key,
    normal_form,
    parse,
    render,
    tokenize,
    values,
)

PRIME = 2**61 - 1


def evaluate_modulo(tree, residues):
    """Value modulo PRIME with each leaf replaced by its residue."""
    if isinstance(tree, int):
        return residues[tree]
    left, right = evaluate_modulo(tree[1], residues), evaluate_modulo(tree[2], residues)
    if tree[0] == "/":
        return left * pow(right, -1, PRIME) % PRIME
    return (left + right if tree[0] == "+" else left - right if tree[0] == "-" else left * right) % PRIME


def functions_by_mode(leaves):
    """Normal form -> the rational functions that its trees compute; trees that divide by zero are left out.

    A function is its value at two random points: a collision is a matter of 1e-15.
    """
    rng = random.Random(1)
    points = [{leaf: rng.randrange(1, PRIME) for leaf in set(leaves)} for _ in range(2)]
    found = defaultdict(set)
    for tree in all_trees(leaves):
        try:
            values(tree)
        except ZeroDivisionError:
            continue
        found[tree_key(tree)].add(tuple(evaluate_modulo(tree, point) for point in points))
    return found


trees = st.recursive(
    st.integers(0, 30),
    lambda inner: st.tuples(st.just("neg"), inner) | st.tuples(st.sampled_from("+-*/"), inner, inner),
    max_leaves=8,
)


# --- parser ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("7", 7),
        ("0", 0),
        ("1+2*3", ("+", 1, ("*", 2, 3))),
        ("1-2-3", ("-", ("-", 1, 2), 3)),
        ("8/4/2", ("/", ("/", 8, 4), 2)),
        (" ( 1 + 2 )\n*\t3 ", ("*", ("+", 1, 2), 3)),
        ("-3+5", ("+", ("neg", 3), 5)),
        ("+3+5", ("+", 3, 5)),
        ("-2*3", ("neg", ("*", 2, 3))),
        ("4*(-3)", ("*", 4, ("neg", 3))),
        ("((5))", 5),
        ("123456789012", 123456789012),
    ],
)
def test_parse(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "+", "-", "()", "(", ")", "(1", "1)", "1+", "*1", "1*/2", ")1(", "(1)2", "1 2", "1(2)", "(1)(2)"],
        *["2**3", "7//2", "2^3", "7%2", "3!", "1.5", ".5", "3.", "3--5", "3+-5", "2*-3", "--3", "- -3", "+-3"],
        *["05", "00", "1234567890123", "0x3", "3_0", "3e0", "1,000", "x", "3x5", "a+1", "1=1", "1;2", "1#", "\\times"],
        *["１+2", "٣+5", "3²", "3×5", "3−5", "3+5\u200b", "3\x005", "𝟛+5", "True", "__import__('os')"],
    ],
)
def test_rejects(text):
    with pytest.raises(ExpressionError):
        parse(text)


def test_bounds():
    assert parse("(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH) == 1
    with pytest.raises(ExpressionError, match=f"at most {MAX_DEPTH} nested"):
        parse("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1))
    assert literals(parse("1" + " " * (MAX_LENGTH - 1))) == [1]
    with pytest.raises(ExpressionError, match=f"at most {MAX_LENGTH} characters"):
        parse("1" + " " * MAX_LENGTH)


@pytest.mark.parametrize("op", "+-*/")
def test_longest_chain_needs_no_recursion(op):
    text = op.join("1" for _ in range(MAX_LENGTH // 2))
    tree = parse(text)
    assert literals(tree) == [1] * (MAX_LENGTH // 2)
    assert values(tree)[-1] == {"+": 256, "-": -254, "*": 1, "/": 1}[op]
    assert mode_key(text).count("1") == MAX_LENGTH // 2


@given(st.text(alphabet="0123456789+-*/() .x", max_size=40) | st.text(max_size=20))
def test_parse_accepts_or_raises_expression_error(text):
    try:
        tree = parse(text)
    except ExpressionError:
        return
    # what the parser accepts is plain arithmetic, so Python's own grammar agrees on the value
    try:
        found = values(tree)[-1]
    except ZeroDivisionError:
        return
    assert isinstance(found, int | Fraction)
    assert found == python_value(text)


def python_value(text):
    """The value by Python's own grammar, as a reference for precedence and grouping."""
    operators = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}

    def walk(node):
        if isinstance(node, ast.Constant):
            return Fraction(node.value)
        if isinstance(node, ast.UnaryOp):
            return walk(node.operand) * (-1 if isinstance(node.op, ast.USub) else 1)
        return operators[type(node.op)](walk(node.left), walk(node.right))

    return walk(ast.parse(" ".join(map(str, tokenize(text))), mode="eval").body)


# --- values ------------------------------------------------------------------------------------------------------


def test_values_are_exact_and_in_post_order():
    assert values(parse("7/3*9")) == [7, 3, Fraction(7, 3), 9, 21]
    assert values(parse("-(3-5)")) == [3, 5, -2, 2]
    assert values(parse("1*1000000/999999"))[-1] == Fraction(1000000, 999999) != 1
    assert values(parse("1/3+1/3+1/3"))[-1] == 1
    with pytest.raises(ZeroDivisionError):
        values(parse("4/(2-2)"))
    with pytest.raises(ZeroDivisionError):
        values(parse("1/2/(1/2-1/2)"))


def test_literals_ignore_signs():
    assert literals(parse("-3*(5-(-7))+0")) == [3, 5, 7, 0]


# --- modes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1+2+3", "3+(1+2)", "(2+3)+1", "+1+2+3", "1-(-2-3)", "-(-1-2)+3"], "1+2+3"),
        (["9-(4-2)", "9+2-4", "2-(4-9)", "2+9-4", "-4+2+9"], "2-4+9"),
        (["8/(4/2)", "8*2/4", "2/(4/8)", "2*8/4", "2/4*8"], "2*8/4"),
        (["(3-5)*(2-9)", "(5-3)*(9-2)", "-(3-5)*(9-2)"], "(2-9)*(3-5)"),
        (["7-19+36+55", "36+55+7-19", "7+36+(55-19)"], "7-19+36+55"),
        (["5-5", "-5+5", "-(5-5)"], "5-5"),
        (["(5-5)*3", "(-(5-5))*3", "3*(-5+5)"], "3*(5-5)"),
        (["-(1+2)", "-1-2", "-2-1"], "-1-2"),
        (["-3*5", "-5*3", "(-3)*5", "5*(-3)"], "-3*5"),
        (["2*(3+4)", "(4+3)*2"], "2*(3+4)"),
    ],
)
def test_same_mode(texts, expected):
    assert {mode_key(text) for text in texts} == {expected}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2*(3+4)", "2*3+2*4"),
        ("3*2/2", "3+2-2"),
        ("3*1", "3/1"),
        ("3+0", "3-0"),
        ("1+2", "3"),
        ("9-4", "4-9"),
        ("2-9", "9-2"),
        ("1*2+3", "1*3+2"),
    ],
)
def test_different_modes(one, other):
    assert mode_key(one) != mode_key(other)


@pytest.mark.parametrize(
    ("leaves", "n_trees", "n_modes"), [((17,), 1, 1), ((17, 29), 8, 6), ((17, 29, 41), 192, 68), ((17, 29, 41, 67), 7680, 1170)]
)
def test_distinct_leaves_normal_form_is_equality_of_rational_functions(leaves, n_trees, n_modes):
    assert sum(1 for _ in all_trees(leaves)) == n_trees
    modes = functions_by_mode(leaves)
    assert len(modes) == n_modes  # OEIS A140606
    assert all(len(functions) == 1 for functions in modes.values())
    assert len(set.union(*modes.values())) == n_modes


@pytest.mark.parametrize(("leaves", "n_modes", "n_functions"), [((2, 2, 2, 2), 89, 64), ((3, 3, 8, 8), 363, 309), ((2, 2, 3, 4), 644, 603)])
def test_repeated_leaves_same_normal_form_is_the_same_function(leaves, n_modes, n_functions):
    modes = functions_by_mode(leaves)
    assert max(len(functions) for functions in modes.values()) == 1
    assert (len(modes), len(set.union(*modes.values()))) == (n_modes, n_functions)


@given(trees, st.randoms(use_true_random=False))
def test_shuffled_text_parses_back_to_the_same_mode(tree, rng):
    sign, form = normal_form(tree)
    shuffled = parse(render(sign, form, rng.shuffle))
    assert normal_form(shuffled) == (sign, form)
    assert sorted(literals(shuffled)) == sorted(literals(tree))
    text = render(sign, form)
    assert mode_key(text) == text
    try:
        expected = values(tree)[-1]
    except ZeroDivisionError:
        return
    assert values(shuffled)[-1] == values(parse(text))[-1] == expected


@given(trees)
def test_commuting_and_regrouping_keep_the_mode(tree):
    def mirrored(tree):
        if isinstance(tree, int):
            return tree
        if tree[0] == "neg":
            return ("neg", mirrored(tree[1]))
        left, right = mirrored(tree[1]), mirrored(tree[2])
        if tree[0] in "+*":
            return (tree[0], right, left)
        return ("+", ("neg", right), left) if tree[0] == "-" else (tree[0], left, right)

    assert tree_key(mirrored(tree)) == tree_key(tree)


def test_features():
    assert sorted(features("2+3*4")) == sorted(["+2", "+3*4", "*3", "*4", "=2+3*4"])
    assert features("(7-2)*3") == features("-3*(2-7)") == ("*3", "*2-7", "+2", "-7", "=-3*(2-7)")
    assert features("5") == ("=5",)


@given(trees, st.randoms(use_true_random=False))
def test_equal_modes_have_equal_features(tree, rng):
    sign, form = normal_form(tree)
    assert features(render(sign, form, rng.shuffle)) == features(render(sign, form))
