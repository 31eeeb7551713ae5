"""Embedders: unit rows, similar texts near, hostile texts harmless."""

import numpy as np
import pytest
from group_factory import make_groups

from setpo_envs.completion import Completion
from setpo_envs.embedders import EMBEDDERS, embed, hash_ngrams, resolve_embedder
from setpo_envs.embedders.ngrams import _WINDOW
from setpo_verifiers.expressions import features, mode_key


def cosines(vectors):
    return vectors @ vectors.T


def with_vectors(rows):
    return [[Completion("x", embedding=None if row is None else np.array(row)) for row in group] for group in rows]


@pytest.mark.parametrize("embedder", EMBEDDERS)
def test_unit_float32_rows_for_every_embedder(embedder):
    keys = [["1+2", "2*3", None], ["(1+2)*3", None, "7"]]
    completions = [[Completion(str(key), embedding=np.arange(1.0, 5.0) * (i + 1)) for i, key in enumerate(row)] for row in keys]
    embeddings = embed(make_groups(completions, keys), embedder)
    assert embeddings.shape[:2] == (2, 3) and embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=2), 1, rtol=1e-5)


# --- ngram ---


def test_ngram_agrees_with_counting_without_hashing():
    texts = ["the answer is (1+2)*3 = 9", "the answer is 3*(2+1) = 9", "so we try 4 + 5 and get 9 at once", "the answer is (1+2)*3 = 9"]

    def counts(text):
        data = b"\xff" + text.encode() + b"\xfe" * 4
        grams = [data[i : i + n] for i in range(len(data) - 4) for n in (3, 4, 5)]
        return {gram: grams.count(gram) for gram in grams}

    exact = np.array([[sum(a[k] * b.get(k, 0) for k in a) for b in map(counts, texts)] for a in map(counts, texts)], float)
    exact /= np.sqrt(np.outer(exact.diagonal(), exact.diagonal()))
    np.testing.assert_allclose(cosines(hash_ngrams(texts)), exact, atol=0.12)  # a collision in 1024 bins is worth about 0.03
    assert exact[0, 1] > 0.5 > exact[0, 2]


def test_ngram_of_empty_and_short_texts():
    texts = ["", "", "a", "ab", "1", "日", "\x00", "\ud800"]
    vectors = hash_ngrams(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    similarity = cosines(vectors)
    np.testing.assert_allclose(similarity[0, 1], 1, rtol=1e-6)
    assert similarity[1, 2:].max() < 0.6  # they share the end markers at most
    assert np.linalg.norm(hash_ngrams([chr(code) for code in range(256)]), axis=1) == pytest.approx(1)


def test_ngram_of_a_text_does_not_depend_on_its_neighbours():
    texts = ["alpha", "", "beta" * 100, "γδ", "x" * (2 * _WINDOW + 7), "omega"]  # the windows' edges fall inside texts
    alone = np.concatenate([hash_ngrams([text]) for text in texts])
    np.testing.assert_array_equal(hash_ngrams(texts), alone)
    np.testing.assert_array_equal(hash_ngrams(texts[::-1]), alone[::-1])
    padded = ["y" * k + "|" for k in range(_WINDOW - 8, _WINDOW + 8)]
    np.testing.assert_array_equal(hash_ngrams(padded), np.concatenate([hash_ngrams([text]) for text in padded]))


def test_ngram_is_the_same_in_every_process():
    vector = hash_ngrams(["42"])[0]
    assert {i: round(float(v * 3), 6) for i, v in enumerate(vector) if v} == {
        304: -1.0,
        331: -1.0,
        400: 1.0,
        408: -1.0,
        426: -1.0,
        485: -1.0,
        851: 1.0,
        954: -1.0,
        1019: 1.0,
    }


def test_ngram_takes_a_million_characters():
    long = "🙂" * 1_000_000
    similarity = cosines(hash_ngrams([long, long[:-1], "short"]))
    assert similarity[0, 1] > 0.999 and similarity[0, 2] < 0.2


def test_ngram_embeds_each_distinct_text_once(monkeypatch):
    seen = []
    monkeypatch.setattr("setpo_envs.embedders.ngrams.hash_ngrams", lambda texts: seen.append(list(texts)) or hash_ngrams(texts))
    embeddings = embed(make_groups([["a", "b", "a"], ["b", "b", "c"]]), "ngram")
    assert seen == [["a", "b", "c"]]
    np.testing.assert_array_equal(embeddings.reshape(6, -1), hash_ngrams(list("ababbc")))


# --- expression ---


def test_expression_is_the_cosine_of_feature_counts():
    keys = [mode_key(text) for text in ("1+2*3", "2*3+1", "1+2+3", "(1+2)*3", "5")] + [None, None]
    similarity = cosines(embed(make_groups([["text"] * 7], [keys]), "expression")[0])

    def cosine(a, b):
        a, b = features(a), features(b)
        dot = sum(a.count(f) * b.count(f) for f in set(a))
        return dot / np.sqrt(sum(a.count(f) ** 2 for f in set(a)) * sum(b.count(f) ** 2 for f in set(b)))

    expected = np.array([[cosine(a, b) for b in keys[:5]] for a in keys[:5]])
    np.testing.assert_allclose(similarity[:5, :5], expected, atol=1e-6)
    assert keys[0] == keys[1] and 0 < expected[0, 2] < 1
    np.testing.assert_allclose(similarity[5:, 5:], 1, atol=1e-6)  # no mode: alike,
    np.testing.assert_array_equal(similarity[5:, :5], 0)  # and unlike any expression


def test_expression_refuses_other_tasks():
    with pytest.raises(ValueError, match=r"arithmetic expressions, got 'x\^2'.*choose the embedder 'ngram'"):
        embed(make_groups([["a", "b", "c"]], [["1+2", "x^2", None]]), "expression")


# --- policy and callables ---


def test_policy_vectors_are_normalised():
    embeddings = embed(make_groups(with_vectors([[[3, 4], [-6, 8], [1e-30, 0]]])), "policy")
    np.testing.assert_allclose(embeddings[0], [[0.6, 0.8], [-0.6, 0.8], [1, 0]], rtol=1e-6)
    half = embed(make_groups(with_vectors([[np.full(1000, 60000, np.float16)] * 2])), "policy")
    np.testing.assert_allclose(half, 1000**-0.5, rtol=1e-5)
    huge = embed(make_groups(with_vectors([[[3e200, 4e200], [0, 5e-324], [1, 1]]])), "policy")
    np.testing.assert_allclose(huge[0, :2], [[0.6, 0.8], [0, 1]], rtol=1e-6)


def test_zero_vectors_share_a_direction_of_their_own():
    similarity = cosines(embed(make_groups(with_vectors([[[0, 0], [3, 4], [0, 0]]])), "policy")[0])
    np.testing.assert_allclose(similarity, [[1, 0, 1], [0, 1, 0], [1, 0, 1]], atol=1e-6)


def test_policy_says_what_to_hand_in():
    with pytest.raises(ValueError, match=r"got none for member 1 of group 0: hand in Completion\(text, embedding=vector\)"):
        embed(make_groups(with_vectors([[[1, 2], None]])), "policy")
    with pytest.raises(ValueError, match="member 0 of group 0"):
        embed(make_groups([["plain", "text"]]), "policy")
    with pytest.raises(ValueError, match=r"one size, got 2 and 3 \(member 1 of group 0\)"):
        embed(make_groups(with_vectors([[[1, 2], [1, 2, 3]]])), "policy")
    with pytest.raises(ValueError, match="shape \\(1, 2\\)"):
        embed(make_groups(with_vectors([[[[1, 2]], [[1, 2]]]])), "policy")
    with pytest.raises(ValueError, match="finite"):
        embed(make_groups(with_vectors([[[1, 2], [1, np.nan]]])), "policy")


def test_a_callable_is_an_embedder():
    groups = make_groups([["a", "bb", "ccc"]])
    embeddings = embed(groups, lambda groups: np.array([[[len(t), 1] for t in row] for row in groups.completions_NG]))
    np.testing.assert_allclose(embeddings[0, 1], np.array([2, 1]) / 5**0.5, rtol=1e-6)
    with pytest.raises(ValueError, match=r"shape \(1, 3, d\) from .*, got \(3, 2\)"):
        embed(groups, lambda groups: np.ones((3, 2)))


def test_unknown_embedder():
    with pytest.raises(ValueError, match="unknown embedder 'bert': choose one of ngram, expression, policy, tfidf, equations, trans"):
        resolve_embedder("bert")
    with pytest.raises(ValueError, match="unknown embedder None: choose one of ngram"):
        resolve_embedder({"over": "batch"})
    with pytest.raises(ValueError, match="unknown option 'size' of embedder 'tfidf': choose among over"):
        resolve_embedder({"name": "tfidf", "size": 3})
    with pytest.raises(ValueError, match="unknown option 'size' of embedder 'ngram': choose among none, it has no options"):
        resolve_embedder({"name": "ngram", "size": 3})
    with pytest.raises(ValueError, match="embedder 'endpoint' needs the option 'model'"):
        resolve_embedder("endpoint")
    with pytest.raises(ValueError, match="unknown over 'world': choose one of group, batch"):
        resolve_embedder({"name": "tfidf", "over": "world"})


def test_names_and_mappings_give_the_same_embedder():
    assert resolve_embedder({"name": "ngram"}) is resolve_embedder("ngram")
    assert resolve_embedder({"name": "tfidf", "over": "group"}) == resolve_embedder("tfidf")


# --- tfidf ---


def test_tfidf_by_hand():
    groups = make_groups([["the cat", "The CAT sat", "the dog"]])
    the, cat, once = 1.0, np.log(4 / 3) + 1, np.log(4 / 2) + 1  # log((1 + 3)/(1 + t)) + 1 for t = 3, 2, 1
    rows = np.array([[the, cat, 0, 0], [the, cat, once, 0], [the, 0, 0, once]])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(cosines(embed(groups, "tfidf")[0]), rows @ rows.T, atol=1e-6)


def test_tfidf_over_the_batch_knows_what_other_groups_say():
    texts = [["a b", "a c"], ["d b", "d e"]]
    group, batch = (embed(make_groups(texts), {"name": "tfidf", "over": over}) for over in ("group", "batch"))
    a, once = np.log(5 / 3) + 1, np.log(5 / 2) + 1  # of T = 4 texts two have a, two have b, one has c
    np.testing.assert_allclose(cosines(batch[0])[0, 1], a * a / (np.hypot(a, a) * np.hypot(a, once)), rtol=1e-6)
    assert cosines(group[0])[0, 1] < cosines(batch[0])[0, 1]  # inside its group a is what all say
    np.testing.assert_array_equal(embed(make_groups(texts[:1]), "tfidf")[0], group[0])


def test_tfidf_of_signs_and_empty_texts():
    similarity = cosines(embed(make_groups([["1+2", "1*2", "", " \n", "\ud800"]]), "tfidf")[0])
    assert 0 < similarity[0, 1] < 1
    np.testing.assert_allclose(similarity[2, 2:], [1, 1, 0], atol=1e-6)
    np.testing.assert_array_equal(similarity[:2, 2:4], 0)


# --- equations ---


def test_equations_sees_formulas_and_nothing_else():
    texts = ["$x=1$ first", "now $x=1$ and $y$", r"\\(z\\)", "no formula", "none here either"]
    similarity = cosines(embed(make_groups([texts]), "equations")[0])
    expected = np.eye(5)
    expected[0, 1] = expected[1, 0] = 0.5**0.5
    expected[3, 4] = expected[4, 3] = 1
    np.testing.assert_allclose(similarity, expected, atol=1e-6)


def test_embedders_with_options_make_shapers_whose_spec_round_trips():
    import json

    import gymnasium as gym

    import setpo_envs  # noqa: F401 (registers the environments)

    options = {"embedder": {"name": "tfidf", "over": "group"}}
    env = gym.make("setpo/Countdown-v0", group_size=3, shaper="setpo", shaper_kwargs=options)
    twin = gym.make(gym.envs.registration.EnvSpec.from_json(json.dumps(json.loads(env.spec.to_json()))))
    credits = []
    for each in (env, twin):
        each.reset(seed=1)
        credits.append(each.step(("1+2 words", "1+2 words", "quite another"))[4]["group"]["credits"])
    np.testing.assert_array_equal(*credits)
    assert credits[0][2] > credits[0][0]
