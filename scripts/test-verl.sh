#!/usr/bin/env bash
# Run the tests of the verl adapter with the real verl, in an environment of its own: verl pins older transformers than the rest of the suite.
# About 2 GB with a CPU build of torch. PYTHON chooses the interpreter (3.11 or newer), VENV_VERL the folder of the environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv="${VENV_VERL:-build/venv-verl}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

test -x "$venv/bin/pip" || "${PYTHON:-python3}" -m venv "$venv"
install=("$venv/bin/pip" install --quiet --disable-pip-version-check)
"${install[@]}" torch==2.13.0
# verl imports more than it declares: the reward loop needs what stands after it
"${install[@]}" verl==0.9.1 cachetools fastapi uvicorn pyzmq msgspec "TransferQueue>=0.1.10" "numpy>=1.26" "gymnasium>=1.1" pytest
"${install[@]}" --no-deps -e .
"$venv/bin/python" -m pytest tests/test_integrations.py tests/test_verl.py "$@"
