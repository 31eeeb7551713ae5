"""Prompts to tokens and tokens to completions, with a transformers tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from setpo_envs import Completion


class Text:
    """A tokenizer with the form of its prompts.

    Args:
        tokenizer: Of transformers.
        chat: Whether prompts are put to the model as a user's message in the tokenizer's chat template, or as they are;
            None does so where there is a template.
        system_prompt: The message before it, in a chat.
        end_ids: Tokens that end a completion.
    """

    def __init__(self, tokenizer: Any, end_ids: Sequence[int], chat: bool | None = None, system_prompt: str | None = None) -> None:
        template = getattr(tokenizer, "chat_template", None)
        self.tokenizer, self.chat, self.system_prompt = tokenizer, bool(template) if chat is None else chat, system_prompt
        if self.chat and not template:
            raise ValueError("expected a tokenizer with a chat template for chat=True, got one without; use chat=False for a base model")
        if system_prompt is not None and not self.chat:
            raise ValueError("expected a chat for system_prompt, got plain prompts: put it before the prompts' own text")
        if not end_ids:
            raise ValueError("expected an end token in the model's generation config or its tokenizer, got none: no completion would end")
        self.end_ids = tuple(end_ids)
        self.pad_id = self.end_ids[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def encode(self, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """(N, P) int64 padded on the left, and (N, P) bool, False on the padding. Raises ValueError for a prompt without tokens."""
        if not prompts:
            raise ValueError("expected at least one prompt, got none")
        if self.chat:
            before = [] if self.system_prompt is None else [{"role": "system", "content": self.system_prompt}]
            chats = [[*before, {"role": "user", "content": prompt}] for prompt in prompts]
            prompts = [self.tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) for chat in chats]
        rows = self.tokenizer(list(prompts), add_special_tokens=not self.chat)["input_ids"]
        if empty := [i for i, row in enumerate(rows) if not row]:
            raise ValueError(f"expected at least one token in every prompt, got none in prompts {empty[:5]}: {prompts[empty[0]]!r:.80}")
        P = max(map(len, rows))
        ids = torch.tensor([[self.pad_id] * (P - len(row)) + list(row) for row in rows])
        return ids, torch.tensor([[False] * (P - len(row)) + [True] * len(row) for row in rows])

    def decode(self, ids: Sequence[int], stop: Sequence[str] = ()) -> Completion:
        """The text of sampled tokens, cut before the first of ``stop``; truncated where neither that nor an end token ended it."""
        ended = bool(ids) and ids[-1] in self.end_ids
        text = self._text(ids[:-1] if ended else ids)
        found = [at for at in map(text.find, stop) if at >= 0]
        return Completion(text[: min(found)] if found else text, truncated=not (ended or found), n_tokens=len(ids))

    def stopped(self, ids: Sequence[int], stop: Sequence[str]) -> bool:
        """Whether the last of ``ids`` completed one of ``stop``."""
        # a token has at least a byte: only where the last few have the text is all of it decoded, since a cut may change its left edge
        tail = self._text(ids[-(max(len(text.encode()) for text in stop) + 8) :])
        return any(text in tail for text in stop) and any(text in self._text(ids) for text in stop)

    def _text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
