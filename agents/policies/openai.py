"""Any server that speaks OpenAI's completions or chat protocol, as a policy: vLLM, SGLang, llama.cpp, hosted models."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import torch
from torch import Tensor

from setpo_envs.json_http import check_base_url, patient, request_json, without_key
from setpo_envs.prompts import messages

from .base import Samples, Sampling
from .engine import Drawn, alters_distribution, engine_samples, seeds_of, text_samples

_LOG = logging.getLogger(__name__)
_UNREADABLE_TRIES = 5
_UNFINISHED = (None, "abort", "error")  # what a server that is being stopped says of completions that it did not get done with


class _Unreadable(Exception):
    """A reply that is not what the protocol says."""


class _NoTokens(Exception):
    """A reply that lacks what only some servers give."""


@dataclass
class _Group:
    """What has arrived of one group."""

    prompt_ids: Sequence[int] | None = None
    drawn: list[Drawn] = field(default_factory=list)


@dataclass
class OpenAIPolicy:
    """Samples groups from ``POST {base_url}/completions`` or ``/chat/completions``.

    A request that fails for the moment (lost connection, time-out, 429, 5xx) is sent again after a wait that doubles, with
    jitter, for at most ``patience`` seconds. What had arrived by then is kept in the object: the error says how much, and the
    same call with the same generator asks only for the rest. A group's i-th completion is asked for with the seed of its
    group plus i, however many requests that takes.

    The key is read from the environment when a request is made. It is no field, so no config, record or error holds it.

    Raises (``generate``):
        ConnectionError: The server could not be reached, or said "later", for ``patience`` seconds.
        ValueError: It refused a request, or its replies do not read as completions.
    """

    model: str
    """Name that the server knows."""
    base_url: str = "https://api.openai.com/v1"
    """Up to and with the version."""
    api: Literal["chat", "completions"] = "chat"
    """Whether a prompt is sent as chat messages, for which the server applies its template, or as it stands."""
    log_probs: Literal["raw", "processed"] | None = None
    """None: text only, for evaluation. Else token ids and log-probabilities are asked for too (vLLM gives both), which a server takes
    before ("raw", the usual) or after ("processed", vLLM's ``--logprobs-mode processed_logprobs``) temperature, top_k and top_p."""
    system_prompt: str | None = None
    max_new_tokens: int = 256
    """Limit where ``Sampling`` names none."""
    n_per_request: int | None = None
    """Most completions asked for in one request; None: the whole group."""
    concurrency: int = 16
    """Requests under way at a time."""
    timeout: float = 600.0
    """Seconds for one request, in which a server that does not stream must have generated everything."""
    patience: float = 600.0
    """Seconds for which a request that fails is repeated."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; unset or empty means that no key is sent."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request, over the policy's own; None removes one."""

    def __post_init__(self) -> None:
        check_base_url(self.base_url)
        for name, choices in (("api", ("chat", "completions")), ("log_probs", (None, "raw", "processed"))):
            if getattr(self, name) not in choices:
                raise ValueError(f"expected {name} to be one of {choices}, got {getattr(self, name)!r}")
        for name in (
            "max_new_tokens",
            "concurrency",
            "timeout",
            "patience",
            *(["n_per_request"] if self.n_per_request is not None else []),
        ):
            value = getattr(self, name)
            whole = name not in ("timeout", "patience")
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not value > 0:
                raise ValueError(f"expected {name} as {'an integer' if whole else 'a number'} above 0, got {value!r}")
        if self.system_prompt is not None and self.api != "chat":
            raise ValueError("expected no system_prompt with api='completions', which has no place for it: write it into the prompt")
        self.url = f"{self.base_url.rstrip('/')}/{'chat/completions' if self.api == 'chat' else 'completions'}"
        self.weight_version = 0
        self._arrived: dict[tuple[Any, ...], _Group] = {}
        self._outage = threading.Event()

    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        """Sample ``n`` completions of every prompt; the seeds that are sent come from ``generator``, which a failed call leaves as it was.

        Returns :class:`EngineSamples` where the server's log-probabilities are of the sampling distribution, else
        :class:`TextSamples`, which are for evaluation only.
        """
        if n < 1:
            raise ValueError(f"expected n of at least 1, got {n}")
        before = generator.get_state()
        keys = [(i, prompt, seed, sampling) for i, (prompt, seed) in enumerate(zip(prompts, seeds_of(generator, len(prompts))))]
        earlier = {key: self._arrived[key] for key in keys if key in self._arrived}
        # copies: a thread that an interrupt left behind may still add to the groups of its call
        self._arrived = {key: _Group(group.prompt_ids, [*group.drawn]) for key in keys for group in [earlier.get(key) or _Group()]}
        self._outage.clear()
        try:
            in_threads(lambda key: self._fill(self._arrived[key], *key[1:], n=n), keys, self.concurrency)
        except BaseException as error:
            generator.set_state(before)
            if type(error) in (ConnectionError, ValueError):
                raise type(error)(f"{error}. {self._kept(n)}") from None
            raise
        groups, self._arrived = list(self._arrived.values()), {}
        drawn = [group.drawn[:n] for group in groups]
        if self.log_probs is None:
            return text_samples(drawn, "the policy was made with log_probs=None; 'raw' or 'processed' asks the server for tokens")
        if self.log_probs == "raw" and alters_distribution(sampling):
            reason = (
                f"the server's log-probabilities are those before temperature, top_k and top_p, not those of {sampling}. Start vLLM with "
                "--logprobs-mode processed_logprobs and make the policy with log_probs='processed', or sample at temperature 1 alone"
            )
            return text_samples(drawn, reason)
        return engine_samples([group.prompt_ids or () for group in groups], drawn, self.weight_version)

    def update_weights(self, state: Mapping[str, Tensor]) -> None:
        """Raises ValueError: the protocol has no way to send weights; ``VLLMServerPolicy`` has vLLM's."""
        raise ValueError(f"the weights of {self.model!r} at {self.base_url} cannot be replaced: train with VLLMServerPolicy or VLLMPolicy")

    def describe(self) -> dict[str, Any]:
        """What the completions depend on, for records."""
        names = ("model", "base_url", "api", "system_prompt", "max_new_tokens")
        return {"policy": type(self).__name__, **{name: getattr(self, name) for name in names}, "extra": dict(self.extra)}

    def _kept(self, n: int) -> str:
        whole = sum(len(group.drawn) >= n for group in self._arrived.values())
        single = sum(len(group.drawn) for group in self._arrived.values())
        return (
            f"{whole} of {len(self._arrived)} groups are whole, {single} completions in all, and this policy keeps them: "
            "call generate again with the same arguments, and only the rest is asked for"
        )

    def _fill(self, group: _Group, prompt: str, seed: int, sampling: Sampling, *, n: int) -> None:
        while (have := len(group.drawn)) < n:  # every reply brings at least one: servers may send fewer than they were asked for
            count = min(n - have, self.n_per_request or n)
            prompt_ids, drawn = self._ask(self._body(prompt, count, seed + have, sampling), count)
            group.prompt_ids = prompt_ids
            group.drawn += drawn

    def _body(self, prompt: str, n: int, seed: int, sampling: Sampling) -> dict[str, Any]:
        chat = self.api == "chat"
        body = {
            "model": self.model,
            **({"messages": messages(prompt, self.system_prompt)} if chat else {"prompt": prompt}),
            "n": n,
            "seed": seed,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_new_tokens or self.max_new_tokens,
            "top_k": sampling.top_k or None,  # not OpenAI's own
            "stop": list(sampling.stop) or None,
        }
        if self.log_probs:
            # vLLM would take what is not said from the model's generation_config.json
            explicit = {"top_k": sampling.top_k, "min_p": 0.0, "repetition_penalty": 1.0}
            body |= {"logprobs": True if chat else 0, "return_token_ids": True, **explicit}
        return {name: value for name, value in (body | dict(self.extra)).items() if value is not None}

    def _ask(self, body: dict[str, Any], count: int) -> tuple[Sequence[int] | None, list[Drawn]]:
        """Token ids of the prompt (None without log_probs) and 1 to ``count`` completions."""
        waits = patient(self.patience)
        for _ in range(_UNREADABLE_TRIES):
            reply = self._request(self.url, body)
            try:
                return self._read(reply, count)
            except _NoTokens as error:
                raise ValueError(str(error)) from None
            except _Unreadable as error:
                said = str(error)
            time.sleep(next(waits, 0.0))
        excerpt = without_key(reply.decode("utf-8", "replace"), self.key_variable)[:300]
        raise ValueError(
            f"expected completions from {self.url}, got {_UNREADABLE_TRIES} replies in which {said}; the last begins {excerpt!r}"
        )

    def _request(self, url: str, body: Any) -> bytes:
        return request_json(url, body, key_variable=self.key_variable, timeout=self.timeout, waits=self._waits(url))

    def _waits(self, url: str) -> Iterator[float]:
        for i, wait in enumerate(patient(self.patience)):
            if i == 1 and not self._outage.is_set():
                self._outage.set()
                _LOG.warning("%s does not answer or says later; it is asked again for %g s", url, self.patience)
            yield wait

    def _read(self, reply: bytes, count: int) -> tuple[Sequence[int] | None, list[Drawn]]:
        try:
            data = json.loads(reply)
            choices = data["choices"][:count]
            drawn = [self._drawn(choice) for choice in choices]
            prompt_ids = [*map(int, data.get("prompt_token_ids") or choices[0]["prompt_token_ids"])] if drawn and self.log_probs else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _Unreadable(f"{type(error).__name__} was met") from None
        if not drawn:
            raise _Unreadable("there is no choice")
        return prompt_ids, drawn

    def _drawn(self, choice: Any) -> Drawn:
        text = (choice["message"]["content"] or "") if self.api == "chat" else choice["text"]
        reason = choice["finish_reason"]
        if reason in _UNFINISHED or not isinstance(text, str):
            raise ValueError(f"finish_reason {reason!r}")
        if not self.log_probs:
            return Drawn(text, str(reason))
        if choice.get("token_ids") is None or choice.get("logprobs") is None:
            raise _NoTokens(
                f"expected token ids and log-probabilities from {self.url}, got a completion without: vLLM gives them; "
                "log_probs=None evaluates without them"
            )
        token_ids, found = [*map(int, choice["token_ids"])], choice["logprobs"]
        values = [entry["logprob"] for entry in found["content"]] if self.api == "chat" else found["token_logprobs"]
        if len(values) != len(token_ids) or not all(math.isfinite(value) for value in values):
            raise ValueError("as many finite log-probabilities as tokens")
        return Drawn(text, str(reason), token_ids, values)


def in_threads(work: Callable[[Any], None], items: Sequence[Any], threads: int) -> None:
    """``work`` on every item. After a failure nothing new is begun, what is under way ends, and the first failure is raised.

    The threads are daemons: an interrupt is not held up by replies that are being waited for.
    """
    rest = iter(items)
    failures: list[Any] = []
    lock = threading.Lock()

    def worker() -> None:
        while not failures:
            with lock:
                picked = list(islice(rest, 1))
            if not picked:
                return
            try:
                work(picked[0])
            except BaseException as error:
                failures.append(error)

    crew = [threading.Thread(target=worker, daemon=True) for _ in range(min(threads, len(items)))]
    for thread in crew:
        thread.start()
    try:
        for thread in crew:
            thread.join()
    except BaseException as interrupt:
        failures.append(interrupt)
    if failures:
        raise failures[0]
