"""A local OpenAI-compatible server that behaves as a test says, and the calls that tests make to it."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

from setpo_agents.policies.base import Sampling
from setpo_agents.policies.openai import OpenAIPolicy


def complete(body, **changes):
    """The reply of a well-behaved server: the i-th completion is a function of the prompt, the seed and i alone."""
    chat = "messages" in body
    prompt = body["messages"][-1]["content"] if chat else body["prompt"]
    choices = []
    for i in range(body["n"]):
        number = body["seed"] + i
        text, ids = f"{prompt}{number}", [number % 7, 3, *([5] * (number % 2))]
        choice = {"index": i, "finish_reason": "stop" if number % 2 else "length", **changes}
        choice |= {"message": {"content": text}} if chat else {"text": text}
        if body.get("return_token_ids"):
            values = [-0.25 * (k + 1) for k in range(len(ids))]
            choice |= {"token_ids": ids, "prompt_token_ids": [9] * len(prompt)}
            choice["logprobs"] = {"content": [{"logprob": value} for value in values]} if chat else {"token_logprobs": values}
        choices.append(choice)
    return {"choices": choices}


class Server:
    """``script`` holds what to do with the next requests before behaving well; ``waits`` are those that the client made."""

    def __init__(self):
        self.requests, self.script, self.waits, self.lock = [], [], [], threading.Lock()
        self.busy = self.most_busy = 0
        self.rule = lambda body: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    outer.requests.append((self.path, dict(self.headers), body))
                    step = outer.script.pop(0) if outer.script else outer.rule(body)
                    outer.busy += 1
                    outer.most_busy = max(outer.most_busy, outer.busy)
                try:
                    outer.act(self, step, body)
                except OSError:  # the client has gone
                    self.close_connection = True
                finally:
                    with outer.lock:
                        outer.busy -= 1

            def log_message(self, *args):
                pass

        self.handler, self.httpd = Handler, None
        self.start(0)

    def act(self, handler, step, body):
        if step == "drop":
            handler.close_connection = True
            return
        if isinstance(step, threading.Event):
            step.wait(10)
            step = None
        if callable(step):
            step = (200, {}, json.dumps(step(body)))
        status, headers, reply = step or (200, {}, json.dumps(complete(body)))
        reply = reply.encode()
        handler.send_response(status)
        for name, value in ({"Content-Length": len(reply)} | headers).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(reply)

    def start(self, port):
        self.httpd = ThreadingHTTPServer(("127.0.0.1", port), self.handler)
        self.httpd.daemon_threads = True
        self.thread = threading.Thread(target=self.httpd.serve_forever, args=(0.005,), daemon=True)
        self.thread.start()
        self.port = self.httpd.server_port

    def stop(self):
        if self.httpd:
            self.httpd.shutdown()
            self.httpd.server_close()
            self.thread.join()
            self.httpd = None


def running(monkeypatch):
    """Yields a server; the waits of the client are recorded and cut short, so that a test takes no time but the server's."""
    server, sleep = Server(), time.sleep

    def waited(seconds):
        server.waits.append(seconds)
        sleep(min(seconds, 0.01))

    monkeypatch.setattr("setpo_envs.json_http.time.sleep", waited)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    yield server
    server.stop()


def make(server, **options):
    return OpenAIPolicy("small", f"http://127.0.0.1:{server.port}/v1", **options)


def generate(policy, prompts=("a", "b", "c"), n=4, sampling=Sampling(), seed=0):  # noqa: B008
    return policy.generate(prompts, n, sampling, torch.Generator().manual_seed(seed))


def texts(samples):
    return [[str(text) for text in group] for group in samples.completions_NG]
