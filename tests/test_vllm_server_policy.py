"""How weights reach vLLM's server, against a stand-in for its control requests; tests/test_vllm.py runs the real one."""

import json

import pytest
import torch
from model_server import complete, generate, running, texts

from setpo_agents.policies.vllm_server import VLLMServerPolicy

torch.set_num_threads(1)


class WeightServer:
    """The control requests of vLLM's server; ``restart`` forgets the weights as a new process does."""

    def __init__(self):
        self.log, self.problems = [], []
        self.restart()

    def restart(self):
        self.version, self.loaded, self.paused = "default", None, False
        self.log.append("restart")


@pytest.fixture
def server(monkeypatch):
    yield from running(monkeypatch)


@pytest.fixture
def weight_server(server):
    state = WeightServer()
    generate_reply = server.act

    def act(handler, step, body):
        path = handler.path.lstrip("/")
        if path.startswith("v1/"):
            if step == "restart":
                state.restart()
            loaded = state.loaded
            return generate_reply(handler, lambda body: complete(body | {"seed": body["seed"] if loaded else 10**6}), body)
        state.log.append(path)
        reply = {}
        if path == "pause?mode=wait":
            state.paused = True
        elif path == "resume":
            state.paused = False
        elif path == "collective_rpc":
            assert state.paused and body["method"] == "setpo_replace_weights"
            state.loaded = body["args"][0] if not state.problems else state.loaded
            reply = {"results": [state.problems]}
        elif path == "update_weight_version":
            state.version = body["new_version"]
        elif path == "reset_prefix_cache":
            reply = {"success": True}
        elif path == "weight_info":
            reply = {"weight_version": state.version}
        generate_reply(handler, (200, {}, json.dumps(reply)), body)

    server.act = act
    server.handler.do_GET = lambda handler: act(handler, None, None)
    return server, state


def test_weights_reach_the_server_in_order_and_again_after_a_restart(weight_server, tmp_path):
    pytest.importorskip("safetensors")
    server, state = weight_server
    policy = VLLMServerPolicy("small", f"http://127.0.0.1:{server.port}/v1", weights_folder=str(tmp_path), log_probs="raw", concurrency=1)
    policy.update_weights({"w": torch.ones(2)})
    assert state.log[1:] == ["pause?mode=wait", "collective_rpc", "reset_prefix_cache", "update_weight_version", "resume"]
    expected = generate(policy)
    assert expected.weight_version == 1
    server.script += [None, "restart"]
    state.log.clear()
    again = generate(policy)
    assert texts(again) == texts(expected)  # what the restarted server sampled with its original weights is not among them
    assert state.log.count("restart") == 1 == state.log.count("collective_rpc") and state.loaded == str(next(tmp_path.iterdir()))
    policy.update_weights({"w": torch.zeros(2)})
    assert [path.name for path in tmp_path.iterdir()] == [state.loaded.rsplit("/")[-1]] and generate(policy).weight_version == 2
    state.version = "of-another-run-1"
    with pytest.raises(ValueError, match="another trainer"):
        generate(policy)


def test_weights_that_the_server_refuses(weight_server, tmp_path):
    pytest.importorskip("safetensors")
    server, state = weight_server
    url = f"http://127.0.0.1:{server.port}/v1"
    with pytest.raises(ValueError, match="expected weights_folder"):
        VLLMServerPolicy("small", url).update_weights({})
    policy = VLLMServerPolicy("small", url, weights_folder=str(tmp_path))
    state.problems = ["lm_head.weight is missing"]
    with pytest.raises(ValueError, match="lm_head.weight is missing. The engine keeps"):
        policy.update_weights({"w": torch.ones(2)})
    assert not state.paused and not list(tmp_path.iterdir()) and policy.weight_version == 0
