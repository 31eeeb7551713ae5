"""``setpo/GraphColoring-v0``: the docstring of :class:`GraphColoringEnv` is its specification."""

from __future__ import annotations

from ..card import Card
from ..datasets.graph_coloring import graph_coloring_dataset
from ..env import GroupEnv


class GraphColoringEnv(GroupEnv):
    """Graph colouring: give every vertex one of k colours so that no edge joins two vertices of the same colour.

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/GraphColoring-v0", difficulty="easy", group_size=3)
        prompt, info = env.reset(options={"index": 0})  # the edges 0-1, 0-2, 1-2, 1-4 and 3-4, three colours
        _, reward, _, _, info = env.step(["<answer>01202</answer>", "<answer>12010</answer>", "<answer>01201</answer>"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]  # the third gives 1 and 4 the same colour
        assert info["group"]["mode_keys"].tolist() == ["01202", "01202", "01201"]  # the second is the first with other names

    Observation
        ``str``, the prompt. ``prompt_format="tinyzero"`` states task and answer format in words and asks for the colours in an
        ``<answer>`` tag; ``"terse"`` is ``3abe>`` (the number of colours, then a letter for each edge: a is 0-1, b 0-2, c 1-2, d 0-3,
        e 1-3, ..., S 8-9), answered by the bare colours.
    Action
        Tuple or list of ``group_size`` completions of that prompt, each a ``str`` or a ``Completion(text, truncated,
        embedding)``.
    Reward
        Mean verified reward of the group, a float in [0, 1]; 1 for a correct completion, 0 for any other: no part is paid for some of
        the edges. No shaper changes it.
    Episode
        One group: ``terminated`` is True and ``truncated`` False after the only step.
    Rules
        The answer lists the colours of the vertices 0 to n-1 in this order, one character each: the digits 0 to k-1 as the prompt asks,
        or 1 to k, or the first k capital letters. Not every colour need occur. Spaces, commas and semicolons between them and brackets
        around them make no difference. ``mode="strict"`` counts only an answer in its tag or box, ``"lenient"`` also a text that is a
        list of colours.
    ``info`` of ``reset``
        ``index`` (int), ``problem_id`` (str), ``messages`` (the prompt as chat messages).
    ``info`` of ``step``
        ``index``, ``problem_id``, and ``group``, a dict with the fields of ``setpo_envs.group.GROUP_FIELDS``. A mode is a partition of
        the vertices, right or wrong: the colours renamed in order of appearance, so that ``20212`` and ``01020`` are one mode.
    Splits
        "train", "validation" and "test" hold 80, 10 and 10 % of all graphs. A hash of the edges decides, so the splits are disjoint
        whatever the seeds and the number of colours. A graph whose vertices are numbered in another way is another graph.
    Data
        ``source="generator"`` makes problems on demand (each connected and with at least one colouring; item i depends on ``seed`` and
        i only); ``"enumerate"`` lists every problem of a small space in a fixed order. Free of any licence.
    Metadata
        ``n_vertices``, ``n_edges``, and ``modes`` and ``n_modes``: all partitions that are right.

    Args:
        group_size: G, completions in a group; at least 3 with SetPO.
        source: "generator", "enumerate", or a data set of ``Problem``.
        split: "train", "validation" or "test".
        settings: Which problems are generated or enumerated, as a dict: see ``GraphColoringSettings`` for keys and defaults.
        difficulty: "easy", "medium" or "hard" (4-5, 6-7 and 8-9 vertices) in place of ``min_vertices``, ``max_vertices`` and
            ``edge_range`` in the settings, or None. With the generator ``reset(options={"difficulty": name})`` asks for one problem of
            another difficulty.
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
        data="generated",
        rows="as many as you like",
        verifier="`graph_coloring`",
        licence="none needed",
        example={},
    )
    make_dataset = staticmethod(graph_coloring_dataset)
