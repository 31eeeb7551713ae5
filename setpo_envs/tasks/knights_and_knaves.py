"""``setpo/KnightsAndKnaves-v0``: the docstring of :class:`KnightsAndKnavesEnv` is its specification."""

from __future__ import annotations

from typing import Any

from ..card import Card
from ..datasets.knights_and_knaves import knights_and_knaves_dataset
from ..datasets.problem import Dataset
from ..env import GroupEnv


class KnightsAndKnavesEnv(GroupEnv):
    """Knights and Knaves: everybody always tells the truth or always lies; say from their statements who is what.

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/KnightsAndKnaves-v0", difficulty="easy", group_size=3)
        prompt, info = env.reset(options={"index": 0})
        right = "<answer>Tomas is a pioneer, Amir is a laggard, Quentin is a pioneer</answer>"
        _, reward, _, _, info = env.step([right, right.replace("Amir is a laggard", "Amir is a pioneer"), "no idea"])
        assert info["group"]["rewards"].tolist() == [1.0, 0.0, 0.0]

    Observation
        ``str``, the prompt: the puzzle, then the answer format. ``prompt_format="logic_rl"`` asks for reasoning in a ``<think>`` tag
        and a numbered list in an ``<answer>`` tag; ``"mem_kk"`` for reasoning and a numbered list under ``CONCLUSION:``, which
        ``mode="strict"`` does not read; ``"plain"`` for the roles in an ``<answer>`` tag and nothing else.
    Action
        Tuple or list of ``group_size`` completions of that prompt, each a ``str`` or a ``Completion(text, truncated,
        embedding)``.
    Reward
        Mean verified reward of the group, a float in [0, 1]; 1 for a correct completion, 0 for any other: no part is paid for some
        of the roles, half of which come free by guessing. No shaper changes it.
    Episode
        One group: ``terminated`` is True and ``truncated`` False after the only step.
    Rules
        The answer gives every person exactly the role of the solution, in statements such as ``Ava is a knight``, ``Ava: knight`` or
        ``Knights: Ava, Cleo``, and holds nothing else. ``mode="strict"`` counts only an answer in its tag or box, ``"lenient"`` also
        a ``CONCLUSION:`` block, and a text that is an assignment.
    ``info`` of ``reset``
        ``index`` (int), ``problem_id`` (str), ``messages`` (the prompt as chat messages).
    ``info`` of ``step``
        ``index``, ``problem_id``, and ``group``, a dict with the fields of ``setpo_envs.group.GROUP_FIELDS``. A mode is an
        assignment, right or wrong: ``ava=knight; ben=knave``. One alone is correct, so what is diverse here is text, not modes.
    Splits
        "train", "validation" and "test" hold 80, 10 and 10 % of all puzzles. A hash of the puzzle decides that does not change with
        the names, the order of the people or the wording of equivalent statements, so no puzzle of one split is one of another in
        other words, whatever the seeds. At the default depth and width that leaves two people 38 puzzles (35 to the hash: 25 in
        "train", 3 in "validation", 7 in "test") and three people 2,730 (2,404: 1,920, 251 and 233), however many items there are.
        Rows of the hub are not compared with generated puzzles.
    Data
        ``source="generator"`` makes puzzles on demand: exactly one solution, item i depends on ``seed`` and i only, free of any
        licence. ``"hub"`` is K-and-K/knights-and-knaves (CC-BY-NC-SA-4.0; 2 to 8 people; 6,200 rows in "train", 700 in "test").
        A path reads JSON lines (.jsonl, .json) or .parquet with the columns ``quiz``, ``names``, ``solution`` and ``knight_knave``,
        or ``solution_text``; all rows are used, whatever the split is called. For some numbers of people only, pass the hub's split
        (``5ppl``) as a ``datasets.Dataset``.
    Metadata
        ``n_people``, and ``modes`` and ``n_modes`` (1); for generated puzzles ``depth``, the levels of the deepest statement, and ``key``,
        equal for puzzles that differ in wording only.

    Args:
        group_size: G, completions in a group; at least 3 with SetPO.
        source: "generator", "hub", a path, a ``datasets.Dataset``, or a data set of ``Problem``.
        split: "train", "validation" or "test".
        settings: Which puzzles are generated, as a dict: see ``KnightsAndKnavesSettings`` for keys and defaults.
        difficulty: "easy", "medium" or "hard" (2-3, 4-5 and 6-8 people) in place of ``min_people`` and ``max_people`` in the
            settings, or None. ``reset(options={"difficulty": name})`` asks for one puzzle of another difficulty.
        prompt_format: "logic_rl", "mem_kk" or "plain".
        shaper: Name of a registered shaper, a shaper, or None for no shaping.
        shaper_kwargs: Options of the named shaper.
        mode: "lenient" or "strict".
        order: "random" (with replacement), "shuffle" (each problem once an epoch) or "sequential".
        seed: Root seed of the generator: which problems there are. Which of them come first is up to ``reset(seed=...)``.
        render_mode: "ansi" or None.

    Version history
        v0: first version.
    """

    card = Card(
        data="generated; `K-and-K/knights-and-knaves`",
        rows="as many as you like; train 6,200, test 700",
        verifier="`knights_and_knaves`",
        licence="none needed; CC-BY-NC-SA-4.0",
        example={},
    )
    make_dataset = staticmethod(knights_and_knaves_dataset)

    def __init__(self, dataset: Dataset | None = None, *, mode: str = "lenient", **arguments: Any) -> None:
        if mode == "strict" and arguments.get("prompt_format") == "mem_kk":
            raise ValueError(
                "expected mode='lenient' with prompt_format='mem_kk', got 'strict', which counts answers in tags and boxes only: "
                "no completion that keeps to the prompt would be rewarded"
            )
        super().__init__(dataset, mode=mode, **arguments)
