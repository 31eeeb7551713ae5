"""vLLM's OpenAI-compatible server as a sampler that takes the weights of the policy in training."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from .engine import Drawn
from .openai import OpenAIPolicy
from .vllm import check_replaced, save_weights
from .vllm_worker import EXTENSION

_PUSH_TRIES = 5  # a server that is restarted in between is not paused any more
_NEEDED = f"Weights are replaced in a vLLM server with VLLM_SERVER_DEV_MODE=1 and --worker-extension-cls {EXTENSION}"


@dataclass
class VLLMServerPolicy(OpenAIPolicy):
    """vLLM's OpenAI-compatible server, whose weights can be replaced through a folder that both sides see.

    The server is started with ``VLLM_SERVER_DEV_MODE=1`` and ``--worker-extension-cls setpo_agents.policies.vllm_worker.WeightUpdates``.
    A server that was restarted serves its original weights again. It is told by its weight version: it is given the current ones, and
    what it sampled before that is thrown away.
    """

    weights_folder: str = ""
    """Folder that trainer and server see under one path; it holds the current weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._server = self.base_url.rstrip("/").removesuffix("/v1")
        self._run = uuid.uuid4().hex[:12]
        self._pushes = 0
        self._lock = threading.Lock()

    def update_weights(self, state: Mapping[str, Tensor]) -> None:
        """Sample from now on with these weights, named and shaped as in the transformers model's ``state_dict()``.

        Raises:
            ValueError: No folder, or a weight is missing, unknown or of another shape; the server then keeps those it has.
            ConnectionError: The server did not answer for ``patience`` seconds.
        """
        if not self.weights_folder:
            raise ValueError("expected weights_folder, a folder that the server sees under the same path, to hand weights over")
        path = save_weights(state, self._path(self.weight_version + 1))
        try:
            self._push(path, self.weight_version + 1)
        except ValueError:
            path.unlink()
            raise
        self._path(self.weight_version).unlink(missing_ok=True)
        self.weight_version += 1
        self._arrived = {}

    def sleep(self, level: int = 1) -> None:
        """As ``VLLMPolicy.sleep``; the server is started with ``--enable-sleep-mode``."""
        self._control(f"sleep?level={level}")

    def wake_up(self) -> None:
        """Take back the memory that ``sleep`` freed."""
        self._control("wake_up")

    def _ask(self, body: dict[str, Any], count: int) -> tuple[Sequence[int] | None, list[Drawn]]:
        while True:
            pushes = self._pushes
            reply = super()._ask(body, count)
            if not self.weight_version:
                return reply
            with self._lock:
                current = self._has_current_weights()
                if current and pushes == self._pushes:
                    return reply
                if not current:
                    self._push(self._path(self.weight_version), self.weight_version)

    def _has_current_weights(self) -> bool:
        version = self._control("weight_info")["weight_version"]
        if version not in ("default", self._name(self.weight_version)):
            raise ValueError(f"expected the weights of this run in {self._server}, got version {version!r}: another trainer replaces them")
        return version != "default"

    def _push(self, path: Path, version: int) -> None:
        """Replace the weights while nothing is sampled, so that no key or value of the old ones is left."""
        try:
            for _ in range(_PUSH_TRIES):
                self._control("pause?mode=wait")
                check_replaced(self._control("collective_rpc", method="setpo_replace_weights", args=[str(path)])["results"])
                if self._control("reset_prefix_cache")["success"]:
                    break
            else:
                raise ValueError(f"{self._server} keeps prefixes of the old weights: completions are under way though it is paused")
            self._control("update_weight_version", new_version=self._name(version))
            self._pushes += 1
        except ValueError:
            self._control("resume")
            raise
        self._control("resume")

    def _control(self, path: str, **body: Any) -> Any:
        url = f"{self._server}/{path}"
        try:
            return json.loads(self._request(url, None if path == "weight_info" else body))
        except json.JSONDecodeError:
            raise ValueError(f"expected JSON from {url}, got something else: is it vLLM's server?") from None
        except (ConnectionError, ValueError) as error:
            raise type(error)(f"{error}. {_NEEDED}") from None

    def _name(self, version: int) -> str:
        return f"{self._run}-{version}"

    def _path(self, version: int) -> Path:
        return Path(self.weights_folder).absolute() / f"{self._name(version)}.safetensors"
