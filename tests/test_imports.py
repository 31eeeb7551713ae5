import subprocess
import sys

import pytest

HEAVY = "torch transformers sympy datasets matplotlib pyarrow vllm sentence_transformers"


@pytest.mark.parametrize(
    "statement, forbidden",
    [
        ("import setpo_envs", HEAVY),
        ("import setpo_envs, gymnasium; gymnasium.make('setpo/Countdown-v0').reset(seed=0)", HEAVY),
        ("import setpo_envs, gymnasium; gymnasium.make('setpo/MATH-v0', source='embedded').reset(seed=0)", HEAVY),
        ("import setpo_verifiers; setpo_verifiers.verify('countdown', '1+2', {'numbers': [1, 2], 'target': 3})", f"{HEAVY} gymnasium"),
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
