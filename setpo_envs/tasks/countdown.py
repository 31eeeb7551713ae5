"""``setpo/Countdown-v0``: the docstring of :class:`CountdownEnv` is its specification."""

from __future__ import annotations

from ..card import Card
from ..datasets.countdown import countdown_dataset
from ..env import GroupEnv


class CountdownEnv(GroupEnv):
    """Countdown: write an arithmetic expression over given numbers that equals a target.

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/Countdown-v0", group_size=3)
        prompt, info = env.reset(options={"index": 0})  # 93 from 20, 93 and 20
        _, reward, _, _, info = env.step(["<answer>93 + 20 - 20</answer>", "<answer>20 * 93 / 20</answer>", "<answer>93</answer>"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]  # the third leaves two numbers out
        assert info["group"]["mode_keys"][0] != info["group"]["mode_keys"][1]  # two solutions

    Observation
        ``str``, the prompt. ``prompt_format="tinyzero"`` states task, rules and answer format in words and asks for the final
        expression in an ``<answer>`` tag; ``"terse"`` is ``1,2,5,7=05>`` (sorted numbers, two digits at least for the target),
        answered by the bare expression.
    Action
        Tuple or list of ``group_size`` completions of that prompt, each a ``str`` or a ``Completion(text, truncated,
        embedding)``.
    Reward
        Mean verified reward of the group, a float in [0, 1]; 1 for a correct completion, 0 for any other. Members without a
        verdict (``valid`` False) do not enter the mean. No shaper changes it.
    Episode
        One group: ``terminated`` is True and ``truncated`` False after the only step.
    Rules
        Every given number is used exactly as often as it is given, and no other; ``+ - * /``, parentheses and a leading sign;
        fractions and negative values may occur on the way; the value equals the target exactly. An optional ``= target`` may
        follow. ``mode="strict"`` counts only an answer in its tag or box, ``"lenient"`` also a text that is an expression.
    ``info`` of ``reset``
        ``index`` (int), ``problem_id`` (str), ``messages`` (the prompt as chat messages).
    ``info`` of ``step``
        ``index``, ``problem_id``, and ``group``: (G,) arrays of rewards, statuses, answers, mode keys and credits, field by field
        in ``setpo_envs.group.GROUP_FIELDS``.

        The agent computes A = w * base(r') + lambda * c. Two expressions have one mode when they are equal after flattening
        sums and products, sorting their operands and writing a-b and a/b as signed and inverse terms.
    Splits
        "train", "validation" and "test" hold 80, 10 and 10 % of all problems. A hash of the sorted numbers and the target
        decides, so the splits are disjoint whatever the seeds. Rows from files are all used, whatever the split is called;
        the hub data set has only "train".
    Data
        ``source="generator"`` makes problems on demand (each solvable; item i depends on ``seed`` and i only);
        ``"enumerate"`` lists every distinct problem of a small space in a fixed order, with all its modes in
        ``metadata["modes"]``; ``"hub"`` is Jiayi-Pan/Countdown-Tasks-3to4 (490,364 rows; its page states no licence, the copies
        published with TinyZero are under Apache-2.0); a path reads JSON lines (.jsonl, .json) or .parquet with the columns
        ``nums`` (or ``numbers``) and ``target``. Rows need not be solvable. Generated problems are free of any licence.
    Metadata
        ``n_numbers``; where modes are counted also ``modes``, ``n_modes``, and ``brackets``, the fewest pairs of brackets in any of them.

    Args:
        group_size: G, completions in a group; at least 3 with SetPO.
        source: "generator", "enumerate", "hub", a path, a ``datasets.Dataset``, or a data set of ``Problem``.
        split: "train", "validation" or "test".
        settings: Which problems are generated or enumerated, as a dict: see ``CountdownSettings`` for keys and defaults.
        difficulty: "easy", "medium" or "hard" (3, 4 and 5 numbers) in place of ``min_numbers`` and ``max_numbers`` in the settings,
            or None. With the generator ``reset(options={"difficulty": name})`` asks for one problem of another difficulty.
        prompt_format: "tinyzero" or "terse".
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
        data="generated; `Jiayi-Pan/Countdown-Tasks-3to4`",
        rows="as many as you like; train 490,364",
        verifier="`countdown`",
        licence="none needed; none stated",
        example={},
    )
    make_dataset = staticmethod(countdown_dataset)
