"""verl: the verifiers as ``reward.custom_reward_function`` (tried with 0.9.1).

    reward.custom_reward_function.path=pkg://setpo_envs.integrations.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.mode=strict

Whatever else :func:`compute_score` takes by keyword goes into ``reward_kwargs`` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# By its full name: verl may load this file by its path, outside the package.
from setpo_envs.integrations.judge import judge
from setpo_verifiers import registry

DATA_SOURCES = {  # data_source of the rows that verl's and others' scripts prepare -> task; the name of a task stands for itself
    "openai/gsm8k": "gsm8k",
    "DigitalLearningGmbH/MATH-lighteval": "math",
    "lighteval/MATH": "math",
    "EleutherAI/hendrycks_math": "math",
    "HuggingFaceH4/MATH-500": "math",
    "math_dapo": "math",
    "math_dapo_reasoning": "math",
    "BytedTsinghua-SIA/DAPO-Math-17k": "math",
    "agentica-org/DeepScaleR-Preview-Dataset": "math",
    "numina_aops_forum": "math",
    "numina_synthetic_math": "math",
    "numina_amc_aime": "math",
    "numina_synthetic_amc": "math",
    "numina_cn_k12": "math",
    "numina_olympiads": "math",
    "math-ai/amc23": "math",
    "AI-MO/aimo-validation-amc": "math",
    "math-ai/minervamath": "math",
    "math-ai/olympiadbench": "olympiad",
    "Hothan/OlympiadBench": "olympiad",
    "aime": "aime",
    "aime24": "aime",
    "aime25": "aime",
    "aime2024": "aime",
    "aime2025": "aime",
    "math-ai/aime24": "aime",
    "math-ai/aime25": "aime",
    "HuggingFaceH4/aime_2024": "aime",
    "Maxwell-Jia/AIME_2024": "aime",
    "AI-MO/aimo-validation-aime": "aime",
    "opencompass/AIME2025": "aime",
    "Jiayi-Pan/Countdown-Tasks-3to4": "countdown",
    "kk_logic": "knights_and_knaves",
    "K-and-K/knights-and-knaves": "knights_and_knaves",
}


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    task: str | None = None,
    mode: str = "lenient",
    workers: int = 1,
    timeout: float = 5.0,
    reward_router_address: Any = None,
    reward_model_tokenizer: Any = None,
    **options: Any,
) -> dict[str, float | str]:
    """Judge one completion.

    verl cannot leave a completion out of its group, so one without a verdict scores 0.0 like a wrong one, but not silently: ``valid`` is
    0.0 (verl averages it in validation), ``status`` and ``reason`` say why, and the worker logs a warning.

    Args:
        data_source: Where the row comes from; ``DATA_SOURCES`` says which task that is.
        solution_str: The completion.
        ground_truth: The gold answer, in any form that the task's verifier accepts.
        extra_info: Of the row; its ``task`` takes precedence over ``data_source``.
        task: Task of all rows; takes precedence over both.
        mode: "lenient", or "strict" where an answer counts only in its marked place.
        workers: Processes that judge, for each of verl's ``reward.num_workers``; 0 judges in verl's own process, without limits.
        timeout: Seconds a completion may take.
        reward_router_address: Of a reward model; not used.
        reward_model_tokenizer: Of a reward model; not used.
        options: Further options of the task's verifier.

    Returns:
        Floats and texts under the same keys whatever the verdict, since verl stacks them over a batch: ``score``, ``acc`` and ``valid``
        (0.0 or 1.0), ``status`` (in lower case), ``reason``, ``answer`` and ``mode_key`` (blank where there is none), and ``pred``, by
        which verl takes its majority vote: the mode key, else the answer.

    Raises:
        ValueError: A data source without a task, an unknown mode, or a malformed gold. (verl's rate-limited reward manager logs the error
            and scores 0.0; its other managers stop.)
        TypeError: An option that the task does not have.
    """
    task = task or (extra_info or {}).get("task") or DATA_SOURCES.get(data_source) or data_source
    if task not in registry.TASKS:
        raise ValueError(
            f"expected a task for data_source {data_source!r}, got {task!r}; set task in reward.custom_reward_function.reward_kwargs or in "
            f"extra_info to one of {', '.join(sorted(registry.TASKS))}"
        )
    (verdict,) = judge([(task, solution_str, ground_truth, mode, options)], workers=workers, timeout=timeout)
    return {
        "score": verdict.reward,
        "acc": verdict.reward,
        "valid": float(verdict.valid),
        "status": verdict.status.name.lower(),
        "reason": verdict.reason,
        "answer": verdict.answer or "",
        "mode_key": verdict.mode_key or "",
        "pred": verdict.mode_key or verdict.answer or "",
    }
