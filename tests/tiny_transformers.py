"""Small random decoders of transformers with a tokenizer of one token a character."""

import torch

ALPHABET = "0123456789+-*/()=,> abcdefgh"
PAD, EOS, END = 0, 1, 2  # END is a second end token, as chat models have


def make_tokenizer(chat=False):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {text: i for i, text in enumerate(["<pad>", "<eos>", "<end>", *ALPHABET])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", additional_special_tokens=["<end>"])
    if chat:
        fast.chat_template = "{% for m in messages %}{{ m.role[0] | replace('u', 'a') }}={{ m.content }},{% endfor %}>"
    return fast


def make_model(kind="llama", tied=False, dtype=torch.float32, seed=0, **fields):
    """Two layers, two queries a key, weights far from uniform so that a wrong mask or position shows."""
    import transformers

    config_class = {"llama": transformers.LlamaConfig, "qwen2": transformers.Qwen2Config, "mistral": transformers.MistralConfig}[kind]
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    ids = {"vocab_size": len(ALPHABET) + 3, "pad_token_id": PAD, "eos_token_id": [EOS, END], "bos_token_id": None}
    config = config_class(
        **{**sizes, **ids, "max_position_embeddings": 128, "tie_word_embeddings": tied, "initializer_range": 0.25, **fields}
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(config).to(dtype)
        for name, weight in model.named_parameters():
            if name.endswith("bias"):  # Qwen2's, which start at 0
                weight.data.normal_(std=0.5)
    return model
