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


# How a question is put; {question} is its place. No template shows a sample answer: a policy that repeats the prompt must not hit one.
QUESTION_PROMPTS = {
    # the instruction on the model cards of Qwen2.5-Math
    "boxed": "{question}\nPlease reason step by step, and put your final answer within \\boxed{}.",
    # the tags of TinyZero
    "think_answer": "{question}\nShow your work in <think> </think> tags. Then return the final answer in <answer> </answer> tags.",
    # the format of the data set's own solutions
    "gsm8k": '{question}\nReason step by step. Write the final answer, and nothing else, in the last line behind "####".',
    # the question alone, for base models, few-shot prompts and data that state the format already
    "plain": "{question}",
}


def question_prompt(prompt_format: str) -> Callable[[str], str]:
    """The function that puts a question: by name, or a template of your own that contains ``{question}``. Raises ValueError otherwise."""
    template = QUESTION_PROMPTS.get(prompt_format, prompt_format)
    if not isinstance(template, str) or "{question}" not in template:
        known = ", ".join(QUESTION_PROMPTS)
        raise ValueError(f"expected prompt_format among {known}, or a template that contains {{question}}, got {prompt_format!r}")
    before, _, after = template.partition("{question}")
    return lambda question: f"{before}{question}{after}"


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


def graph_coloring_tinyzero(n: int, edges: Sequence[tuple[int, int]], colors: int) -> str:
    """Task and answer format in words, for models that reason. The sample answer is for fewer vertices than any problem has."""
    return (
        f"A graph has the vertices 0 to {n - 1} and the edges {', '.join(f'{u}-{v}' for u, v in edges)}.\n"
        f"Give every vertex one of the {colors} colours {', '.join(map(str, range(colors)))}, so that no edge joins two of the same "
        "colour.\n"
        f"Show your work in <think> </think> tags. Then return the colours of the vertices 0 to {n - 1}, in this order and without spaces, "
        "in <answer> </answer> tags, for example <answer>01</answer> if there were two vertices."
    )


def graph_coloring_terse(n: int, edges: Sequence[tuple[int, int]], colors: int) -> str:
    """``3abe>``: the number of colours and the edges, for small policies trained from scratch; the answer is the bare colours.

    An edge is one letter of ``EDGE_LETTERS``: a is 0-1, b 0-2, c 1-2, d 0-3, e 1-3, f 2-3 and so on, by the greater vertex and then the
    lesser. One token an edge halves the prompt, and a token alone says what it joins.
    """
    return f"{colors}{''.join(sorted((EDGE_LETTERS[v * (v - 1) // 2 + u] for u, v in edges), key=EDGE_LETTERS.index))}>"


EDGE_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"  # one for each pair of ten vertices
GraphColoringPrompt = Callable[[int, "Sequence[tuple[int, int]]", int], str]
GRAPH_COLORING_PROMPTS: dict[str, GraphColoringPrompt] = {"tinyzero": graph_coloring_tinyzero, "terse": graph_coloring_terse}


def knights_and_knaves_logic_rl(quiz: str, names: Sequence[str], role_names: tuple[str, str]) -> str:
    """Reasoning in a think tag, then a numbered list in an answer tag."""
    return (
        f"{quiz}\n\nThink it through step by step inside <think> </think> tags. Then state what everybody is, one person a line, "
        f"inside <answer> </answer> tags, like this:\n<answer>\n{_role_list(names, role_names)}\n</answer>"
    )


def knights_and_knaves_mem_kk(quiz: str, names: Sequence[str], role_names: tuple[str, str]) -> str:
    """Reasoning, then a numbered list under ``CONCLUSION:``, without tags."""
    return (
        f"{quiz}\n\nReason step by step. End your reply with the line CONCLUSION: and under it what everybody is, "
        f"one person a line, like this:\nCONCLUSION:\n{_role_list(names, role_names)}"
    )


def knights_and_knaves_plain(quiz: str, names: Sequence[str], role_names: tuple[str, str]) -> str:
    """The puzzle and where to put the answer, no more."""
    return f"{quiz}\nGive the role of each person inside <answer> </answer> tags, in words such as {names[0]} is ..., {names[-1]} is ..."


def with_article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _role_list(names: Sequence[str], role_names: tuple[str, str]) -> str:
    either = " / ".join(map(with_article, role_names))
    return "\n".join([f"({number}) {name} is {either}" for number, name in enumerate(names, start=1)])


KnightsAndKnavesPrompt = Callable[[str, Sequence[str], "tuple[str, str]"], str]
KNIGHTS_AND_KNAVES_PROMPTS: dict[str, KnightsAndKnavesPrompt] = {
    "logic_rl": knights_and_knaves_logic_rl,
    "mem_kk": knights_and_knaves_mem_kk,
    "plain": knights_and_knaves_plain,
}
