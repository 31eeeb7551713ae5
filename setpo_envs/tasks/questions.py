"""What the environments over tables of questions share: where the rows come from, and how a question is put."""

from __future__ import annotations

from typing import Any, ClassVar

from ..datasets.problem import Dataset
from ..datasets.table import Table, load
from ..env import GroupEnv
from ..prompts import QUESTION_PROMPTS

MATHS = ("math", "aime", "olympiad", "gsm8k")  # the verifiers that read ####


class QuestionEnv(GroupEnv):
    """An environment whose problems are the rows of a table; a task is a subclass that names its ``table``.

    Observation
        ``str``, the prompt: the question and, by ``prompt_format``, the answer format that it asks for.

        ================ =========================================================== =======================================
        "boxed"          reason step by step, the answer within ``\\boxed{}``         the sentence of Qwen2.5-Math
        "think_answer"   ``<think>`` and ``<answer>`` tags                           the tags of TinyZero
        "gsm8k"          the answer behind ``####`` in the last line                 the format of GSM8K's solutions
        "plain"          the question alone                                          for base models and formats of your own
        ================ =========================================================== =======================================

        Any other string that contains ``{question}`` is a template of your own. Whatever was asked for, an answer counts in a
        box, a tag or a ``####`` line, and with ``mode="lenient"`` also in the sentence that states it.
    Action
        Tuple or list of ``group_size`` completions of that prompt, each a ``str`` or a ``Completion(text, truncated, embedding)``.
    Reward
        Mean verified reward of the group, in [0, 1]: 1 for a correct completion, 0 for any other. Members without a verdict do
        not enter the mean; no shaper changes it.
    Episode
        One group: ``terminated`` is True and ``truncated`` False after the only step.
    ``info``
        ``index``, ``problem_id``, from ``reset`` also ``messages`` (the prompt as chat messages, behind the ``system_prompt`` if
        there is one; a tokenizer's chat template is the agent's to apply), from ``step`` also ``group``: (G,) arrays of rewards,
        statuses, answers, mode keys and credits, field by field in ``setpo_envs.group.GROUP_FIELDS``.

    Args:
        source: "hub", by ``datasets.load_dataset``; the hub id of another copy that the task's docstring names; "embedded", a few
            problems written for this repository, with which everything works offline; the path of a file (.jsonl, .json,
            .parquet) or folder with the columns of any of these copies; a ``datasets.Dataset``; or a data set of ``Problem``.
        split: None is "train" where the source has it, else its only split. All rows of a file are used.
        prompt_format: See above.
        group_size, shaper, shaper_kwargs, mode, order, system_prompt, render_mode: As :class:`~setpo_envs.env.GroupEnv`.

    A row without a question, or with a gold answer that the verifier cannot use, is left out: ``dataset.left_out`` names it, and a
    warning counts them. To make several environments over one data set, load it once and pass ``source=env.unwrapped.dataset``.

    Raises:
        ValueError: An argument out of its choices; no row that can be used; ``mode="strict"`` with a prompt that asks for no format.
        ConnectionError: The hub can be neither reached nor read from its cache. Nothing else is loaded in its place.
    """

    table: ClassVar[Table]

    @classmethod
    def make_dataset(cls, source: Any = "hub", *, split: str | None = None, prompt_format: str = "boxed") -> Dataset:
        """The problems, with the arguments of the environment that concern them."""
        return load(cls.table, source, split=split, prompt_format=prompt_format)

    def __init__(
        self, dataset: Dataset | None = None, *, mode: str = "lenient", system_prompt: str | None = None, **arguments: Any
    ) -> None:
        prompt_format = arguments.get("prompt_format", "boxed")
        marks = ["\\boxed", "<answer>"]
        if arguments.get("task", "math") in MATHS:
            marks.append("####")
        template = QUESTION_PROMPTS.get(prompt_format, prompt_format)
        if mode == "strict" and system_prompt is None and isinstance(template, str) and not any(mark in template for mark in marks):
            raise ValueError(
                f"expected a prompt_format that asks for an answer behind {' or '.join(marks)}, or a system_prompt that does, "
                f"got prompt_format={prompt_format!r} with mode='strict', in which no other answer counts"
            )
        super().__init__(dataset, mode=mode, system_prompt=system_prompt, **arguments)
