"""The graph colouring verifier: what is an answer, what is right, what is one mode."""

import json
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpo_verifiers import GraphColoringGold, Status, colorings, parse_graph, verify, verify_graph_coloring
from setpo_verifiers.explain import explain
from setpo_verifiers.graph_coloring import MAX_LENGTH, REASONS, partition

GOLD = {"n": 5, "edges": [[0, 1], [0, 2], [1, 2], [1, 4], [3, 4]], "colors": 3}


def answer(text, gold=GOLD, **options):
    return verify("graph_coloring", f"<answer>{text}</answer>", gold, **options)


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 5))
    pairs = list(combinations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return GraphColoringGold(n, tuple(sorted(edges)), draw(st.integers(1, 3)))


def same(colors):
    """A colouring as the set of pairs of vertices that it makes equal: nothing of the names of colours is left."""
    return frozenset((u, v) for u, v in combinations(range(len(colors)), 2) if colors[u] == colors[v])


# ---- what is right


@settings(deadline=None, max_examples=40)
@given(graphs())
def test_right_answers_are_those_that_trying_all_finds(graph):
    gold = {"n": graph.n, "edges": [list(edge) for edge in graph.edges], "colors": graph.colors}
    right = set()
    for colors in product("012"[: graph.colors], repeat=graph.n):
        verdict = answer("".join(colors), gold)
        proper = not any(colors[u] == colors[v] for u, v in graph.edges)
        assert verdict.status == (Status.CORRECT if proper else Status.WRONG)
        if proper:
            right.add(verdict.mode_key)
    assert colorings(graph) == tuple(sorted(right))
    assert all(answer(mode, gold).mode_key == mode for mode in right)


@settings(deadline=None)
@given(st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.text("0123", min_size=n, max_size=n)] * 2)))
def test_two_answers_are_one_mode_when_they_make_the_same_vertices_equal(pair):
    first, second = pair
    assert (partition(first) == partition(second)) == (same(first) == same(second))
    assert partition(partition(first)) == partition(first) and partition(first)[0] == "0"


@pytest.mark.parametrize("edges, expected", [([], 5), ([[0, 1]], 3), ([[0, 1], [1, 2]], 2), ([[0, 1], [1, 2], [0, 2]], 1)])
def test_modes_of_three_vertices(edges, expected):
    assert len(colorings(parse_graph({"n": 3, "edges": edges, "colors": 3}))) == expected


def test_a_graph_without_a_colouring():
    triangle = {"n": 3, "edges": [[0, 1], [1, 2], [0, 2]], "colors": 2}
    assert colorings(parse_graph(triangle)) == ()
    assert answer("010", triangle).reason == "edge 0-2"


# ---- what is an answer


@pytest.mark.parametrize(
    "text",
    [
        *(
            "01202",
            "12010",
            "0 1 2 0 2",
            "0,1,2,0,2",
            "0, 1, 2, 0, 2",
            "0; 1; 2; 0; 2",
            "[0, 1, 2, 0, 2]",
            "(0,1,2,0,2)",
            "{0, 1, 2, 0, 2}",
        ),
        *("12313", "1 2 3 1 3", "ABCAC", "B, C, A, B, A", "01202.", "$01202$", " \n0\n1\n2\n0\n2 ", "\\boxed{01202}", "[01202]"),
    ],
)
def test_forms_of_a_right_answer(text):
    verdict = answer(text)
    assert (verdict.status, verdict.reason, verdict.mode_key) == (Status.CORRECT, "correct", "01202")
    assert verify("graph_coloring", f"\\boxed{{{text}}}", GOLD, mode="strict").reward == 1 or "boxed" in text
    if "boxed" not in text:
        assert verify("graph_coloring", text, GOLD) == verdict  # lenient takes the bare text
        assert verify("graph_coloring", text, GOLD, mode="strict").status == Status.NO_ANSWER


@pytest.mark.parametrize(
    "text, reason, key",
    [
        ("00000", "edge 0-1", "00000"),
        ("01201", "edge 1-4", "01201"),
        ("12312", "edge 1-4", "01201"),
        ("01221", "edge 1-4", "01221"),
        ("01222", "edge 3-4", "01222"),
        ("0120", "vertices", "0120"),
        ("012021", "vertices", "012021"),
        ("01232", "colors", "01232"),  # 0 and 3 are never both colours
        ("01303", "colors", "01202"),
        ("45040", "colors", "01202"),
        ("ABDAD", "colors", "01202"),
        ("0120B", "syntax", None),
        ("abcac", "syntax", None),
        ("01 20 2", "syntax", None),
        ("0:0, 1:1, 2:2, 3:0, 4:2", "syntax", None),
        ("red, green, blue, red, blue", "syntax", None),
        ("-01202", "syntax", None),
        ("0.1.2.0.2", "syntax", None),
        ("[01202", "syntax", None),
        ("[[01202]]", "syntax", None),
        ("٠١٢٠٢", "syntax", None),  # digits, but not these
        ("01202 or 01212", "syntax", None),
        ("01202 " * 9, "syntax", None),
        ("[]", "syntax", None),
        ("$", "syntax", None),
        (".", "syntax", None),
        ("0" * (MAX_LENGTH + 1), "syntax", None),
        (" ", "no_answer", None),
    ],
)
def test_answers_that_are_wrong_and_why(text, reason, key):
    verdict = answer(text)
    assert (verdict.reward, verdict.reason, verdict.mode_key) == (0, reason, key)
    assert verdict.status == (Status.NO_ANSWER if reason == "no_answer" else Status.WRONG)
    assert reason in REASONS or reason.startswith("edge ")
    if reason == "syntax":  # without a marker it declares nothing
        assert verify("graph_coloring", text, GOLD).status == Status.NO_ANSWER


def test_every_edge_can_be_the_one_that_fails():
    for u, v in GOLD["edges"]:
        lone = {**GOLD, "n": 5, "edges": [[v, u]], "colors": 5}
        colors = [str(vertex) for vertex in range(5)]
        colors[v] = colors[u]
        assert answer("".join(colors), lone).reason == f"edge {u}-{v}"


@settings(deadline=None)
@given(st.text(max_size=40))
def test_no_text_raises(text):
    for mode in ("lenient", "strict"):
        verdict = verify_graph_coloring(f"<answer>{text}</answer>", GOLD, mode=mode)
        assert verdict.valid and (verdict.reward == 0 or verdict.mode_key in colorings(parse_graph(GOLD)))


def test_what_is_no_text_or_mode():
    with pytest.raises(TypeError, match="expected the completion as a str"):
        verify("graph_coloring", None, GOLD)
    with pytest.raises(ValueError, match="lenient"):
        verify("graph_coloring", "01202", GOLD, mode="lax")


# ---- gold


def test_forms_of_a_gold():
    parsed = parse_graph(GOLD)
    assert parsed == parse_graph(json.dumps(GOLD)) == parse_graph(parsed)
    assert parsed == parse_graph({**GOLD, "edges": [(4, 3), (1, 0), (2, 1), (4, 1), (2, 0)]})  # order and direction make no difference
    assert parsed == (5, ((0, 1), (0, 2), (1, 2), (1, 4), (3, 4)), 3)


@pytest.mark.parametrize(
    "gold, message",
    [
        ({**GOLD, "n": 0}, "n must be an integer from 1 to 10"),
        ({**GOLD, "n": 11}, "n must be an integer from 1 to 10"),
        ({**GOLD, "n": 5.0}, "n must be an integer"),
        ({**GOLD, "n": True}, "n must be an integer"),
        ({**GOLD, "colors": 0}, "colors must be an integer from 1 to 9"),
        ({**GOLD, "colors": "3"}, "colors must be an integer"),
        ({**GOLD, "edges": "01"}, "edges must be a list of pairs"),
        ({**GOLD, "edges": [[0, 5]]}, r"edge \[0, 5\] is no pair of vertices from 0 to 4"),
        ({**GOLD, "edges": [[0, -1]]}, "is no pair of vertices"),
        ({**GOLD, "edges": [[0, 1, 2]]}, "is no pair of vertices"),
        ({**GOLD, "edges": [[0, 1.0]]}, "is no pair of vertices"),
        ({**GOLD, "edges": [3]}, "edge 3 is no pair"),
        ({**GOLD, "edges": [[2, 2]]}, r"edge \[2, 2\] joins a vertex to itself"),
        ({**GOLD, "edges": [[0, 1], [1, 0]]}, r"edge \[1, 0\] is there twice"),
        ({"n": 5, "colors": 3}, "'edges'"),
        ("01202", "expected a graph colouring gold"),
        ("{", "expected a graph colouring gold"),
        (None, "expected a graph colouring gold"),
        ([], "expected a graph colouring gold"),
    ],
)
def test_a_malformed_gold_says_what_is_wrong(gold, message):
    with pytest.raises(ValueError, match=message) as caught:
        answer("01202", gold)
    assert "expected a graph colouring gold" in str(caught.value)


# ---- explained


def test_an_answer_explained():
    steps = dict(explain("graph_coloring", "<answer>0 1 2 2 2</answer>", GOLD))
    assert steps["gold"] == "5 vertices in 3 colours, the edges 0-1, 0-2, 1-2, 1-4, 3-4"
    assert steps["colours"] == "5 for 5 vertices: 0 has 0, 1 has 1, 2 has 2, 3 has 2, 4 has 2"
    assert steps["edges"] == "of one colour: 3-4" and steps["mode key"] == "01222"
    assert dict(explain("graph_coloring", "01202", GOLD))["edges"] == "all of them join two colours"
    assert "edges" not in dict(explain("graph_coloring", "0120", GOLD))
    assert dict(explain("graph_coloring", "<answer>red</answer>", GOLD))["colours"].startswith("none")
