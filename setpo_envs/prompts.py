"""Prompts: how a problem is put to a policy, and the chat messages that carry it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Messages = list[dict[str, str]]


def messages(prompt: str, system_prompt: str | None = None) -> Messages:
    """The prompt as the chat messages that instruction-tuned models and trainers take.

    No chat template is applied: that is the tokenizer's, on the agent's side.
    """
    system = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    return [*system, {"role": "user", "content": prompt}]


def countdown_tinyzero(numbers: Sequence[int], target: int) -> str:
    """Task, rules and answer format in words, for models that reason: the final expression goes into an answer tag."""
    return (
        f"Numbers: {', '.join(map(str, numbers))}. Target: {target}.\n"
        "Write an arithmetic expression that equals the target. Use every number exactly once, and nothing but these numbers, "
        "the basic operations + - * / and parentheses.\n"
        "Show your work in <think> </think> tags. Then return the final expression in <answer> </answer> tags, "
        "for example <answer>(1 + 2) * 3</answer>."
    )


def countdown_terse(numbers: Sequence[int], target: int) -> str:
    """``1,2,5,7=05>``: for small policies trained from scratch; the answer is the bare expression.

    Numbers are sorted and the target has at least two digits, so that the same thing stands at the same position.
    """
    return f"{','.join(map(str, sorted(numbers)))}={target:02d}>"


CountdownPrompt = Callable[[Sequence[int], int], str]
COUNTDOWN_PROMPTS: dict[str, CountdownPrompt] = {"tinyzero": countdown_tinyzero, "terse": countdown_terse}
