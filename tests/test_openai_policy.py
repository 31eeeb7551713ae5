"""OpenAIPolicy against a local server that misbehaves on purpose. No network but localhost."""

import itertools
import pickle
import threading
import time
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from model_server import complete, generate, make, running, texts

from setpo_agents.policies.base import Sampling
from setpo_agents.policies.engine import EngineSamples, TextSamples
from setpo_agents.policies.openai import OpenAIPolicy, in_threads
from setpo_envs.completion import is_truncated

torch.set_num_threads(1)
KEY = "sk-never-to-be-seen"


@pytest.fixture
def server(monkeypatch):
    yield from running(monkeypatch)


# --- what is asked and what comes back ---


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_groups_with_tokens(server, api):
    policy = make(server, api=api, log_probs="raw", concurrency=2)
    samples = generate(policy, ["a", "bcd"])
    assert isinstance(samples, EngineSamples) and samples.weight_version == 0
    assert samples.prompt_NP.tolist() == [[0, 0, 9], [9, 9, 9]] and samples.prompt_mask_NP.tolist() == [[False, False, True], [True] * 3]
    for i, prompt in enumerate(["a", "bcd"]):
        numbers = [int(text.removeprefix(prompt)) for text in samples.completions_NG[i]]
        assert numbers == list(range(numbers[0], numbers[0] + 4))
        for g, number in enumerate(numbers):
            length = 2 + number % 2
            assert samples.tokens_NGT[i, g].tolist() == [number % 7, 3, 5 * (number % 2)]
            assert samples.mask_NGT[i, g].tolist() == [1, 1, number % 2]
            assert samples.log_probs_NGT[i, g].tolist() == [-0.25, -0.5, -0.75 * (number % 2)]
            completion = samples.completions_NG[i][g]
            assert completion.n_tokens == length and is_truncated(completion) == (number % 2 == 0)
            assert samples.finish_reasons_NG[i][g] == ("stop" if number % 2 else "length")
    part = samples[1:]
    assert isinstance(part, EngineSamples) and part.completions_NG == samples.completions_NG[1:]
    assert part.finish_reasons_NG == samples.finish_reasons_NG[1:] and torch.equal(part.tokens_NGT, samples.tokens_NGT[1:])
    for path, _, body in server.requests:
        assert path == ("/v1/chat/completions" if api == "chat" else "/v1/completions")
        assert (body["top_k"], body["min_p"], body["repetition_penalty"]) == (0, 0, 1)
        assert body["return_token_ids"] is True and body["logprobs"] == (True if api == "chat" else 0)


def test_what_is_sent(server):
    policy = make(server, system_prompt="be brief", max_new_tokens=77, extra={"top_k": 9, "seed": None, "reasoning_effort": "low"})
    server.script.append(lambda body: complete(body | {"seed": 1}))
    generate(policy, ["a"], 2, Sampling(temperature=0.5, top_p=0.9, top_k=4, stop=("x", "y")))
    generate(make(server, api="completions", max_new_tokens=77), ["a"], 2, Sampling(max_new_tokens=5))
    (_, _, chat), (_, _, plain) = server.requests
    assert chat == {
        "model": "small",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "a"}],
        "n": 2,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 9,
        "max_tokens": 77,
        "stop": ["x", "y"],
        "reasoning_effort": "low",
    }
    seed = plain.pop("seed")
    assert isinstance(seed, int) and plain == {"model": "small", "prompt": "a", "n": 2, "temperature": 1.0, "top_p": 1.0, "max_tokens": 5}


def test_the_generator_is_the_only_randomness_however_the_group_is_divided(server):
    whole = generate(make(server))
    assert texts(generate(make(server))) == texts(whole) == texts(generate(make(server, n_per_request=1)))
    assert texts(generate(make(server), seed=1)) != texts(whole)
    server.rule = lambda body: lambda body: complete(body | {"n": 1})  # one choice, whatever was asked
    assert texts(generate(make(server))) == texts(whole)
    server.rule = lambda body: lambda body: complete(body | {"n": body["n"] + 3})  # more choices than were asked
    assert texts(generate(make(server))) == texts(whole)


@pytest.mark.parametrize(
    "options, sampling, message",
    [
        ({}, Sampling(), "log_probs=None"),
        ({"log_probs": "raw"}, Sampling(temperature=0.5), "--logprobs-mode processed_logprobs"),
        ({"log_probs": "raw"}, Sampling(top_p=0.5), "before temperature"),
    ],
)
def test_samples_without_the_right_log_probs_are_for_evaluation_only(server, options, sampling, message):
    samples = generate(make(server, **options), sampling=sampling)
    assert isinstance(samples, TextSamples) and len(samples.completions_NG) == 3
    truncated = [is_truncated(text) for group in samples.completions_NG for text in group]
    assert truncated == [reason == "length" for group in samples.finish_reasons_NG for reason in group] and len(set(truncated)) == 2
    for name in ("tokens_NGT", "log_probs_NGT", "mask_NGT", "prompt_NP"):
        with pytest.raises(AttributeError, match=f"no {name}.*for evaluation and not for training.*{message}"):
            getattr(samples, name)
    assert samples[:1].completions_NG == samples.completions_NG[:1] and "3 groups" in repr(samples)
    with pytest.raises(ValueError, match="cannot be replaced"):
        make(server).update_weights({})
    assert isinstance(generate(make(server, log_probs="processed"), sampling=Sampling(temperature=0.5)), EngineSamples)


def test_a_server_without_token_ids_is_told_at_once(server):
    server.rule = lambda body: lambda body: complete(body | {"return_token_ids": False})
    with pytest.raises(ValueError, match="token ids and log-probabilities.*log_probs=None evaluates without them"):
        generate(make(server, log_probs="raw"), ["a"])
    assert len(server.requests) == 1


# --- failures ---


def test_what_may_succeed_later_is_repeated(server):
    expected = texts(generate(make(server), ["a"]))
    server.script += [
        (503, {}, "busy"),
        "drop",
        (429, {"Retry-After": "7"}, "slow down"),
        (500, {}, "oops"),
        (429, {"Retry-After": "1e9"}, ""),
    ]
    server.script += [(200, {"Content-Length": 1000}, "{")]  # it broke off
    server.waits.clear()
    assert texts(generate(make(server), ["a"])) == expected
    assert len(server.requests) == 8 and len(server.waits) == 6
    for i, (wait, longest) in enumerate(zip(server.waits, [0.5, 1, 2, 4, 8, 16])):
        assert wait == 7 if i == 2 else longest / 2 <= wait <= longest


@pytest.mark.parametrize("reply", ["<html>", "", "[]", "{}", '{"choices": []}', '{"choices": [{}]}', '{"choices": "ab"}', "[" * 100_000])
def test_replies_that_do_not_read_as_completions(server, reply):
    expected = texts(generate(make(server), ["a"]))
    server.script += [(200, {}, reply)] * 2
    assert texts(generate(make(server), ["a"])) == expected
    server.rule = lambda body: (200, {}, reply)
    before = len(server.requests)
    with pytest.raises(ValueError, match="expected completions from .*/v1/chat/completions, got 5 replies"):
        generate(make(server), ["a"])
    assert len(server.requests) == before + 5


@pytest.mark.parametrize("reason", [None, "abort", "error"])
def test_completions_that_a_dying_server_gave_up_are_asked_for_again(server, reason):
    expected = texts(generate(make(server), ["a"]))
    server.script.append(lambda body: complete(body, finish_reason=reason))
    assert texts(generate(make(server), ["a"])) == expected
    server.rule = lambda body: lambda body: complete(body, finish_reason="content_filter")  # finished, though not as one would wish
    samples = generate(make(server), ["a"])
    assert samples.finish_reasons_NG == [["content_filter"] * 4] and not any(map(is_truncated, samples.completions_NG[0]))


@pytest.mark.parametrize("values", [[-1.0], [-1.0, float("nan"), -1.0], None])
def test_log_probs_that_do_not_fit_the_tokens(server, values):
    def wrong(body):
        reply = complete(body)
        for choice in reply["choices"]:
            choice["token_ids"], choice["logprobs"]["content"] = [1, 2, 3], values and [{"logprob": value} for value in values]
        return reply

    server.rule = lambda body: wrong
    with pytest.raises(ValueError, match="got 5 replies"):
        generate(make(server, log_probs="raw"), ["a"])


def test_a_server_that_dies_in_mid_run_and_comes_back_loses_no_group(server):
    prompts = [f"p{i}:" for i in range(12)]
    expected, port = texts(generate(make(server, concurrency=3), prompts)), server.port
    asked, deaths = Counter(), []

    def rule(body):
        prompt = body["messages"][0]["content"]
        asked[prompt] += 1
        if sum(asked.values()) == 5:
            deaths.append(threading.Thread(target=die))
            deaths[0].start()
            return "drop"

    def die():
        server.stop()
        down.set()
        up.wait(10)
        server.start(port)

    down, up = threading.Event(), threading.Event()
    server.rule = rule
    watch = threading.Thread(target=lambda: (down.wait(10), len(server.waits) or time.sleep(0), up.set()))
    watch.start()
    assert texts(generate(make(server, concurrency=3), prompts)) == expected
    deaths[0].join()
    watch.join()
    once = [prompt for prompt in prompts if asked[prompt] == 1]
    assert set(asked) == set(prompts) and len(once) >= 9  # at most what was under way was asked twice


def test_a_server_that_stays_away_leaves_what_came(server, caplog):
    prompts = ["a", "b", "c", "d"]
    expected = texts(generate(make(server), prompts))
    policy = make(server, concurrency=1, n_per_request=3, patience=1)
    server.rule = lambda body: (502, {}, "gone") if body["messages"][0]["content"] in "cd" and body["n"] == 1 else None
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    with pytest.raises(ConnectionError, match=r"status 502: gone.*2 of 4 groups are whole, 11 completions in all.*only the rest") as raised:
        policy.generate(prompts, 4, Sampling(), generator)
    assert raised.value.__suppress_context__ and torch.equal(generator.get_state(), before)
    assert [record.message for record in caplog.records if "asked again" in record.message]
    server.rule, seen = lambda body: None, len(server.requests)
    assert texts(policy.generate(prompts, 4, Sampling(), generator)) == expected
    rest = [(body["messages"][0]["content"], body["n"]) for _, _, body in server.requests[seen:]]
    assert rest == [("c", 1), ("d", 3), ("d", 1)]
    assert texts(policy.generate(prompts, 4, Sampling(), generator)) != expected  # nothing is kept of a call that returned


def test_a_slow_server_runs_into_the_timeout_and_other_prompts_do_not_wait_for_it(server):
    stuck = threading.Event()
    server.script.append(stuck)
    try:
        samples = generate(make(server, timeout=1), ["a", "b", "c"])
    finally:
        stuck.set()
    assert texts(samples) == texts(generate(make(server), ["a", "b", "c"]))


def test_a_reply_that_drips_ends_at_the_timeout(server, monkeypatch):
    def drip(handler, step, body):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(1000):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            if stopped.wait(0.01):
                return

    stopped, ticks = threading.Event(), itertools.count(step=100)
    monkeypatch.setattr(server, "act", drip)
    # a clock that goes on by 100 s whenever it is read: no byte is late, only the whole
    monkeypatch.setattr("setpo_envs.json_http.time", SimpleNamespace(monotonic=lambda: next(ticks), sleep=lambda seconds: None))
    with pytest.raises(ConnectionError, match="after 2 tries, the last with TimeoutError: the reply did not end within 550 s"):
        generate(make(server, timeout=550, patience=150), ["a"])
    stopped.set()


def test_no_more_requests_at_a_time_than_allowed(server):
    gates = [threading.Event() for _ in range(3)]
    server.script += gates

    def open_gates():  # once all that may be under way are, and a while later
        while server.busy < 3:
            time.sleep(0.01)
        threading.Event().wait(0.1)
        for gate in gates:
            gate.set()

    opener = threading.Thread(target=open_gates)
    opener.start()
    generate(make(server, concurrency=3), [str(i) for i in range(9)])
    opener.join()
    assert server.most_busy == 3


def test_a_refusal_ends_the_call_and_an_interrupt_is_not_held_up(server):
    server.rule = lambda body: (400, {}, "too long") if body["messages"][0]["content"] == "b" else None
    with pytest.raises(ValueError, match="refused the request with status 400: too long.*1 of 3 groups are whole"):
        generate(make(server, concurrency=1), ["a", "b", "c"])
    assert len(server.requests) == 2

    started, never = threading.Event(), threading.Event()

    def work(item):
        started.set()
        never.wait(10)

    class Interrupt(BaseException):
        pass

    joins = threading.Thread.join

    def join(self, timeout=None):
        started.wait(10)
        raise Interrupt

    threading.Thread.join = join
    try:
        with pytest.raises(Interrupt):
            in_threads(work, [1, 2, 3], 1)
    finally:
        threading.Thread.join = joins
        never.set()


# --- the key ---


@pytest.mark.parametrize("key", [KEY, f" {KEY}\n"])  # as read from a file
def test_the_key_is_sent_and_never_said(server, monkeypatch, caplog, capsys, key):
    monkeypatch.setenv("SOME_KEY", key)
    policy = make(server, key_variable="SOME_KEY", patience=0.05)
    generate(policy, ["a"])
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    said = [repr(policy), str(policy.describe()), repr(vars(policy)), repr(pickle.dumps(policy.describe()))]
    filler = "x" * (500 - len(KEY) // 2)
    for step in [(401, {}, f"bad key {KEY}"), (403, {}, f"{filler}{KEY}"), (503, {}, f"{KEY}?"), (200, {}, f"{{{KEY}"), (302, {}, KEY)]:
        server.rule = lambda body, step=step: step
        with pytest.raises((ValueError, ConnectionError)) as raised:
            generate(policy, ["a"])
        error = raised.value
        while error is not None:
            said += [str(error), repr(error)]
            error = error.__cause__
    said += [caplog.text, *capsys.readouterr()]
    assert not [text for text in said if "sk-n" in text]


def test_no_key_is_sent_where_none_is_set_and_a_broken_one_is_not_repeated(server, monkeypatch):
    generate(make(server), ["a"])
    assert "Authorization" not in server.requests[0][1]
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\r\nX-Other: 1")
    with pytest.raises(ValueError, match="OPENAI_API_KEY to hold a key of printable") as raised:
        generate(make(server), ["a"])
    assert KEY not in str(raised.value) and len(server.requests) == 1
    with pytest.raises(ValueError, match="belongs in the environment") as raised:
        OpenAIPolicy("m", f"http://user:{KEY}@localhost/v1")
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"api": "responses"}, "api to be one of"),
        ({"log_probs": True}, "log_probs to be one of"),
        ({"concurrency": 0}, "concurrency as an integer above 0"),
        ({"n_per_request": 0}, "n_per_request as an integer above 0"),
        ({"timeout": None}, "timeout as a number above 0"),
        ({"base_url": "file:///etc"}, "start with http:// or https://"),
        ({"api": "completions", "system_prompt": "x"}, "no system_prompt"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        OpenAIPolicy("m", **options)
    with pytest.raises(ValueError, match="n of at least 1"):
        generate(OpenAIPolicy("m", "http://127.0.0.1:9"), n=0)
