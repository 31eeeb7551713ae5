"""A small random transformers model of one token a character, that vLLM runs on a CPU."""

import os

import pytest

WORDS = ["<eos>", "<pad>", *"0123456789+-*/()=,> "]


def import_vllm():
    """vLLM's settings for a small engine in this process on a busy CPU; skips the module that asks where vLLM is not installed."""
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    # no compiler for the one small kernel that it compiles when it first ranks log-probabilities, and no engine given up meanwhile
    os.environ |= {"TORCHDYNAMO_DISABLE": "1", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "7200"}
    pytest.importorskip("vllm", reason="vllm is not installed: scripts/test-vllm.sh makes an environment for it")


def make_model(folder, *, tied, seed=0):
    """A random two-layer Qwen2 of 22 characters with heads of 32, the smallest that vLLM's CPU attention takes."""
    import tokenizers
    import torch
    import transformers

    torch.manual_seed(seed)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    words.decoder = tokenizers.decoders.Fuse()
    template = "{% for m in messages %}({{ m['content'] }}){% endfor %}="
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", chat_template=template)
    tokenizer.save_pretrained(folder)
    config = transformers.Qwen2Config(
        vocab_size=len(WORDS),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        tie_word_embeddings=tied,
        eos_token_id=0,
        pad_token_id=1,
        initializer_range=0.3,  # wide, so that stale weights show
    )
    model = transformers.Qwen2ForCausalLM(config).eval()
    model.generation_config.update(do_sample=True, top_k=2, repetition_penalty=2.0)  # what a server would add where a request is silent
    model.save_pretrained(folder)
    return model
