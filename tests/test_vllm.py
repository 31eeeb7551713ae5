"""The real vLLM on small random models: samples, log-probabilities, weights, its server (scripts/test-vllm.sh installs and runs it)."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from character_model import WORDS, import_vllm, make_model

import_vllm()

import torch  # noqa: E402

from setpo_agents.policies.base import Sampling  # noqa: E402
from setpo_agents.policies.engine import TextSamples  # noqa: E402
from setpo_agents.policies.openai import OpenAIPolicy  # noqa: E402
from setpo_agents.policies.text import Text  # noqa: E402
from setpo_agents.policies.vllm import VLLMPolicy  # noqa: E402
from setpo_agents.policies.vllm_server import VLLMServerPolicy  # noqa: E402
from setpo_agents.policies.vllm_worker import EXTENSION  # noqa: E402

PROMPTS = ["1,2,3=06>", "7+", "4,4,8,9=24>"]
PATIENT = {"timeout": 3000, "patience": 3000}  # seconds: on a busy machine vLLM starts many times slower
SHARED = {"dtype": "float32", "max_model_len": 128, "enforce_eager": True, "max_num_seqs": 32}


def reference_log_probs(model, samples, sampling):
    """(N, G, T) of the sampled tokens under the sampling distribution, by a plain transformers forward of each completion."""
    out = torch.zeros_like(samples.log_probs_NGT)
    for i, group in enumerate(samples.tokens_NGT):
        prompt = samples.prompt_NP[i][samples.prompt_mask_NP[i]]
        for g, tokens in enumerate(group):
            T = int(samples.mask_NGT[i, g].sum())
            with torch.inference_mode():
                logits = model(torch.cat([prompt, tokens[:T]])[None]).logits[0, len(prompt) - 1 : -1].float() / sampling.temperature
            for t, row in enumerate(logits):
                order = row.argsort(descending=True)[: sampling.top_k or None]
                p = row[order].softmax(0)
                order = order[p.cumsum(0) - p < sampling.top_p]
                kept = torch.full_like(row, -torch.inf).scatter(0, order, row[order])
                out[i, g, t] = kept.log_softmax(0)[tokens[t]]
    return out


def difference(model, samples, sampling=Sampling()):  # noqa: B008
    return float((reference_log_probs(model, samples, sampling) - samples.log_probs_NGT).abs().max())


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def another(model, seed):
    """A model with the same architecture and other weights."""
    torch.manual_seed(seed)
    return type(model)(model.config).eval()


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def engine(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    model = make_model(folder, tied=request.param)
    policy = VLLMPolicy(str(folder), chat=False, max_new_tokens=16, **SHARED)
    yield policy, model
    policy.llm.llm_engine.engine_core.shutdown()


@pytest.fixture
def policy(engine):
    policy, model = engine
    policy.update_weights(model.state_dict())
    return policy, model


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=0.5), Sampling(temperature=1.5, top_p=0.8), Sampling(top_k=3), Sampling(top_k=1)], ids=str
)
def test_groups_and_their_log_probs(policy, sampling):
    policy, model = policy
    samples = policy.generate(PROMPTS, 6, sampling, generator())
    assert samples.tokens_NGT.shape[:2] == (3, 6) == samples.mask_NGT.shape[:2]
    assert samples.prompt_mask_NP.sum(1).tolist() == [len(prompt) for prompt in PROMPTS]
    assert difference(model, samples, sampling) < 1e-4
    ended = 0
    for i in range(3):
        for g, completion in enumerate(samples.completions_NG[i]):
            ids = samples.tokens_NGT[i, g][samples.mask_NGT[i, g].bool()].tolist()
            assert completion.n_tokens == len(ids) <= 16 and 0 not in ids[:-1]
            assert completion.truncated == (ids[-1] != 0) == (samples.finish_reasons_NG[i][g] == "length")
            assert completion == "".join(WORDS[id] for id in ids if id > 1)
            ended += ids[-1] == 0
        assert sampling.top_k == 1 or len({str(completion) for completion in samples.completions_NG[i]}) > 3
    assert 0 < ended or sampling.top_k == 1


def test_the_generator_is_the_only_randomness(policy):
    policy, _ = policy
    first, again, other = (policy.generate(PROMPTS, 4, Sampling(), g) for g in (generator(1), generator(1), generator(2)))
    assert first.completions_NG == again.completions_NG != other.completions_NG
    torch.testing.assert_close(first.log_probs_NGT, again.log_probs_NGT)


def test_stop_texts_limits_and_prompts_that_do_not_fit(policy):
    policy, model = policy
    samples = policy.generate(PROMPTS[:1] * 4, 8, Sampling(stop=("1", "=")), generator())
    reasons = [reason for group in samples.finish_reasons_NG for reason in group]
    assert {"stop", "length"} >= set(reasons) and not any({"1", "="} & set(text) for group in samples.completions_NG for text in group)
    stopped = (samples.tokens_NGT == WORDS.index("=")) | (samples.tokens_NGT == WORDS.index("1"))
    assert stopped.any() and difference(model, samples) < 1e-4  # the token that ended it counts as sampled
    short = policy.generate(PROMPTS, 2, Sampling(max_new_tokens=1), generator())
    assert short.tokens_NGT.shape == (3, 2, 1)
    for prompt, message in (("", "at least one token in every prompt"), ("1" * 128, "prompts of at most 127 tokens, got 128")):
        with pytest.raises(ValueError, match=message):
            policy.generate(["1", prompt], 2, Sampling(), generator())


def test_pushed_weights_are_the_ones_that_sample(policy):
    policy, model = policy
    old = policy.generate(PROMPTS, 4, Sampling(), generator())  # fills the prefix cache with the old weights
    for seed in (1, 2):
        new = another(model, seed)
        version = policy.weight_version
        pushed = {name: tensor.clone() for name, tensor in new.state_dict().items()}
        policy.update_weights(pushed)
        for tensor in pushed.values():  # a trainer changes its weights in place
            tensor.zero_()
        samples = policy.generate(PROMPTS, 4, Sampling(), generator())
        assert samples.weight_version == policy.weight_version == version + 1 and policy.llm.get_weight_version() == str(version + 1)
        assert difference(new, samples) < 1e-4 < 0.5 < difference(model, samples)
        assert samples.completions_NG != old.completions_NG
        again = policy.generate(PROMPTS, 4, Sampling(), generator())
        assert again.completions_NG == samples.completions_NG
    policy.update_weights(model.state_dict())
    back = policy.generate(PROMPTS, 4, Sampling(), generator())
    assert back.completions_NG == old.completions_NG and difference(model, back) < 1e-4


def test_weights_by_file_are_the_same_as_in_memory(policy, monkeypatch):
    policy, model = policy
    new = another(model, 3)
    monkeypatch.setattr(policy, "_same_process", False)
    policy.update_weights(new.state_dict())
    assert difference(new, policy.generate(PROMPTS, 2, Sampling(), generator())) < 1e-4


def test_weights_that_do_not_fit_are_refused_and_change_nothing(policy):
    policy, model = policy
    before, good = policy.generate(PROMPTS, 2, Sampling(), generator()), dict(another(model, 4).state_dict())
    name = "model.layers.1.self_attn.k_proj.weight"  # a piece of a fused weight, whose absence vLLM does not notice
    lacking = {key: value for key, value in good.items() if key != name}
    for state, message in (
        (lacking, f"{name} is missing"),
        (good | {name: good[name][:-1]}, "has the shape"),
        (lacking | {"base_model." + name: good[name]}, "is not a weight of Qwen2ForCausalLM"),
    ):
        with pytest.raises(ValueError, match=message):
            policy.update_weights(state)
    if model.config.tie_word_embeddings:
        with pytest.raises(ValueError, match="to which this model ties it"):
            policy.update_weights(good | {"lm_head.weight": good["lm_head.weight"] + 1})
    after = policy.generate(PROMPTS, 2, Sampling(), generator())
    assert after.completions_NG == before.completions_NG and difference(model, after) < 1e-4


@pytest.mark.parametrize("level", [1, 2])
def test_sleep_between_sampling_and_weights(policy, level):
    policy, model = policy
    before = policy.generate(PROMPTS, 2, Sampling(), generator())
    policy.sleep(level)
    if level == 2:
        with pytest.raises(RuntimeError, match="call update_weights"):
            policy.generate(PROMPTS, 2, Sampling(), generator())
    new = another(model, 5)
    policy.update_weights(new.state_dict())
    assert difference(new, policy.generate(PROMPTS, 2, Sampling(), generator())) < 1e-4
    policy.sleep(1)
    policy.wake_up()
    policy.sleep(1)  # generate wakes
    policy.update_weights(model.state_dict())
    assert policy.generate(PROMPTS, 2, Sampling(), generator()).completions_NG == before.completions_NG


def test_chat_template(policy, monkeypatch):
    policy, model = policy
    text = Text(policy.text.tokenizer, [0], system_prompt="1")
    monkeypatch.setattr(policy, "text", text)
    samples = policy.generate(["2+3"], 2, Sampling(), generator())
    assert "".join(WORDS[id] for id in samples.prompt_NP[0]) == "(1)(2+3)=" and difference(model, samples) < 1e-4


# --- the server ---


class Server:
    """vLLM's OpenAI-compatible server in a process group of its own, which can be killed and started again on the same port."""

    def __init__(self, folder, log):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url, self.log, self.process = f"http://127.0.0.1:{self.port}/v1", log, None
        options = {"--model": folder, "--port": self.port, "--host": "127.0.0.1", "--served-model-name": "small", "--dtype": "float32"}
        options |= {"--max-model-len": 128, "--max-num-seqs": 32, "--logprobs-mode": "processed_logprobs"}
        options |= {"--worker-extension-cls": EXTENSION}
        flat = [str(part) for option in options.items() for part in option]
        self.command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *flat, "--enforce-eager"]

    def start(self):
        environment = os.environ | {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wait(self, seconds=3000):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/models", timeout=5).close()
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.5)
        pytest.fail(f"vLLM's server did not start:\n{self.log.read_text()[-3000:]}")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module", params=[True], ids=["tied"])
def served(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    model = make_model(folder, tied=request.param)
    server = Server(folder, folder / "server.log")
    server.start()
    try:
        server.wait()
        yield server, model
    finally:
        server.kill()


def client(server, **options):
    options = {
        "api": "completions",
        "log_probs": "processed",
        "max_new_tokens": 16,
        "concurrency": 4,
        "timeout": 3000,
        "patience": 3000,
    } | options
    return OpenAIPolicy("small", server.url, **options)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.7, top_p=0.9), Sampling(top_k=3, stop=("1",))], ids=str)
def test_server_groups_and_their_log_probs(served, sampling):
    server, model = served
    samples = client(server).generate(PROMPTS, 4, sampling, generator())
    assert samples.tokens_NGT.shape[:2] == (3, 4) and difference(model, samples, sampling) < 1e-4
    for i, group in enumerate(samples.completions_NG):
        for g, completion in enumerate(group):
            ids = samples.tokens_NGT[i, g][samples.mask_NGT[i, g].bool()].tolist()
            assert completion.n_tokens == len(ids) and completion.truncated == (samples.finish_reasons_NG[i][g] == "length")
            written = "".join(WORDS[id] for id in ids if id > 1)
            assert completion == (written.split("1")[0] if sampling.stop else written)
    one_by_one = client(server, n_per_request=1).generate(PROMPTS, 4, sampling, generator())
    assert one_by_one.completions_NG == samples.completions_NG


def test_server_chat_text_only_and_refusals(served):
    server, model = served
    chat = client(server, api="chat", system_prompt="1").generate(["2+3"], 3, Sampling(), generator())
    assert "".join(WORDS[id] for id in chat.prompt_NP[0]) == "(1)(2+3)=" and difference(model, chat) < 1e-4
    text = client(server, log_probs=None).generate(PROMPTS, 2, Sampling(), generator())
    assert isinstance(text, TextSamples) and [len(group) for group in text.completions_NG] == [2, 2, 2]
    with pytest.raises(ValueError, match="status 400.*128"):
        client(server).generate(["1" * 128], 2, Sampling(), generator())
    with pytest.raises(ValueError, match="status 404"):
        OpenAIPolicy("another", server.url).generate(["1"], 2, Sampling(), generator())


def test_server_killed_in_mid_run_gets_the_current_weights_back_and_loses_no_group(served, tmp_path):
    server, model = served
    asked, whole_before, returned = [], [], []

    class Watched(VLLMServerPolicy):
        def _fill(self, group, prompt, *rest, n):
            super()._fill(group, prompt, *rest, n=n)
            returned.append(prompt)
            if len(returned) == 4:
                whole_before.extend(returned)
                server.kill()
                threading.Thread(target=server.start).start()

        def _ask(self, body, count):
            asked.append(body["prompt"])
            return super()._ask(body, count)

    options = {"api": "completions", "log_probs": "processed", "max_new_tokens": 32, "concurrency": 2, "weights_folder": str(tmp_path)}
    options |= PATIENT
    policy = Watched("small", server.url, **options)
    new = another(model, 7)
    with pytest.raises(ValueError, match="lm_head.weight differs|is missing"):
        policy.update_weights({name: tensor for name, tensor in new.state_dict().items() if "layers.0.mlp" not in name})
    policy.update_weights(new.state_dict())
    prompts = [f"{i},{j}=" for i in range(4) for j in range(3)]
    samples = policy.generate(prompts, 4, Sampling(), generator())
    assert [len(group) for group in samples.completions_NG] == [4] * 12 and samples.weight_version == 1
    # the new process read the original weights from the model's folder; none of its completions with them is here
    assert difference(new, samples) < 1e-4 < 0.5 < difference(model, samples)
    assert len(whole_before) == 4 and set(asked) == set(prompts) and all(asked.count(prompt) == 1 for prompt in whole_before)
    assert policy.generate(prompts, 4, Sampling(), generator()).completions_NG == samples.completions_NG
    policy.update_weights(model.state_dict())
    assert difference(model, policy.generate(PROMPTS, 4, Sampling(), generator())) < 1e-4
    policy.sleep()
    policy.wake_up()
    assert difference(model, policy.generate(PROMPTS, 4, Sampling(), generator())) < 1e-4
