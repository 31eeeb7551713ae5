"""``setpo/Dataset-v0``: the docstring of :class:`DatasetEnv` is its specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpo_verifiers import TASKS
from setpo_verifiers.maths import gold_text, verify_gsm8k, verify_math

from ..card import Card
from ..datasets.problem import Dataset
from ..datasets.table import EMBEDDED, HubSet, Question, Table, is_hub_id, load
from .questions import QuestionEnv


class DatasetEnv(QuestionEnv):
    r"""Any data set of questions and gold answers, yours or the hub's, in one call.

    Example::

        import json
        import pathlib
        import tempfile

        import gymnasium as gym
        import setpo_envs

        path = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl"
        path.write_text(json.dumps({"prompt": "What is 6 times 7?", "reward_model": {"ground_truth": "42"}}))
        env = gym.make("setpo/Dataset-v0", source=str(path), question="prompt", answer="reward_model.ground_truth", group_size=3)
        prompt, info = env.reset(options={"index": 0})
        _, reward, _, _, info = env.step(["\\boxed{42}", "\\boxed{6 \\cdot 7}", "\\boxed{41}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`.

    Reward
        What the verifier of ``task`` says; any verifier registered in ``setpo_verifiers`` is named alike, yours too. A mode is the
        verifier's.
    Splits
        Those of the source; "train" unless ``split`` says otherwise.
    Data
        Yours, under its own licence.

    Args:
        source: Hub id ``owner/name``, such as ``agentica-org/DeepScaleR-Preview-Dataset``, path of a file or folder,
            ``datasets.Dataset``, or a data set of ``Problem``.
        config: Configuration of the hub data set (or of a folder with a data set card).
        question: Column of the question: a text, or chat messages, of which the last one of the user is taken.
        answer: Column of the gold answer in any form that the verifier accepts. ``reward_model.ground_truth`` is a field in a
            column of records.
        id_column: Column of ids, which become ``problem_id``; by default an id is made from the question.
        task: Name of the verifier.
        verifier_options: Options of the verifier for every problem, such as ``{"precision": 0.01}``.
        split, prompt_format, ...: Those of ``QuestionEnv``.

    Version history
        v0: first version.
    """

    card = Card(
        data="any data set of yours or the hub's",
        rows="its own",
        verifier="any",
        licence="its own",
        example={"source": str(EMBEDDED / "math_train.jsonl"), "answer": "solution"},
    )

    @classmethod
    def make_dataset(
        cls,
        source: Any = None,
        *,
        split: str | None = None,
        prompt_format: str = "boxed",
        config: str | None = None,
        question: str = "problem",
        answer: str = "answer",
        id_column: str | None = None,
        task: str = "math",
        verifier_options: Mapping[str, Any] | None = None,
    ) -> Dataset:
        if source is None:
            raise ValueError("expected source: a hub id, a path, a datasets.Dataset, or a data set of Problem")
        if task not in TASKS:
            raise ValueError(f"expected task among {', '.join(sorted(TASKS))}, got {task!r}")
        if config is not None and not isinstance(source, str):
            raise ValueError(f"expected config only with a hub id as source, got config={config!r} with {type(source).__name__}")

        def read(row: Mapping[str, Any], text: str, gold: Any) -> Question:
            if TASKS[task] in (verify_math, verify_gsm8k):
                gold = gold_text(gold)  # of a worked solution the answer alone
            return Question(text, gold, dict(verifier_options or {}))

        hub = (HubSet(source, configs=(config,)),) if config is not None or is_hub_id(source) else ()
        table = Table(name=task, task=task, hub=hub, columns=((question, answer),), read=read, id_column=id_column)
        return load(table, source, split=split, prompt_format=prompt_format)
