#!/usr/bin/env bash
# Install the built wheel beside the PyPI distributions that own the import names "verifiers" and "agents", and use all of them in one process.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

python="${PYTHON:-python3}"
"$python" -m venv "$work/venv"
rm -rf build/lib # files of an earlier build would end up in the wheel
"$work/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/dist" .
"$work/venv/bin/pip" install --quiet --disable-pip-version-check verifiers openai-agents
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/*.whl
cp scripts/coexistence.py "$work"
cd "$work" # away from the checkout, whose folders verifiers/ and agents/ would shadow the installed packages
"$work/venv/bin/python" -I coexistence.py
"$work/venv/bin/pip" check
