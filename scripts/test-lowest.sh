#!/usr/bin/env bash
# Run the test suite with the oldest release of every dependency that pyproject.toml admits (constraints/lowest.txt).
# Needs several GB: torch 2.6.0 is a CUDA build on Linux. PYTHON chooses the interpreter (3.10 or 3.11), VENV_LOWEST the folder of the environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv="${VENV_LOWEST:-build/venv-lowest}"

test -x "$venv/bin/pip" || "${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -c constraints/lowest.txt -e ".[train,report,hub,dev]"
"$venv/bin/python" -m pytest "$@"
