import subprocess
import sys

import pytest

HEAVY = "torch transformers sympy datasets matplotlib pyarrow vllm sentence_transformers"
ALONE = f"{HEAVY} gymnasium setpo_envs antlr4 latex2sympy2_extended math_verify"  # what the verifiers do without


@pytest.mark.parametrize(
    "statement, forbidden",
    [
        ("import setpo_envs", HEAVY),
        ("import setpo_envs, gymnasium; gymnasium.make('setpo/Countdown-v0').reset(seed=0)", HEAVY),
        ("import setpo_envs, gymnasium; gymnasium.make('setpo/MATH-v0', source='embedded').reset(seed=0)", HEAVY),
        ("import setpo_envs.integrations.trl, setpo_envs.integrations.verl", f"{HEAVY} trl verl ray"),
        ("import setpo_verifiers; setpo_verifiers.verify('countdown', '1+2', {'numbers': [1, 2], 'target': 3})", ALONE),
        ("import setpo_verifiers; setpo_verifiers.verify('math', '\\\\boxed{1/2}', '0.5')", ALONE),
    ],
)
def test_imports_are_light(statement, forbidden):
    check = f"import sys; {statement}; print([name for name in {forbidden.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout


def test_importing_registers_the_ids_for_the_prefix_form():
    code = "import gymnasium; print(gymnasium.make('setpo_envs:setpo/Countdown-v0').spec.id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "setpo/Countdown-v0"
