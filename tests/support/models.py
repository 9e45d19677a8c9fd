"""Tiny checkpoints, random and seeded; their tokenizer; and ours with the same weights."""

import hashlib
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from transformers.models.gpt2.configuration_gpt2 import GPT2Config as TheirConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel

from mha_viz.checkpoints.config import check_config
from mha_viz.checkpoints.names import adopt
from mha_viz.gpt2 import GPT2, GPT2Config
from mha_viz.network import Run
from mha_viz.tokens import Token
from mha_viz.trace import Trace

TINY = {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64, "vocab_size": 300}


END_OF_TEXT = "<|endoftext|>"


def byte_level_bpe(corpus: list[str], vocab_size: int) -> Tokenizer:
    """A tokenizer in GPT-2's format, trained on `corpus`; its last id is the end of a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens([END_OF_TEXT])
    return tokenizer


def random_gpt2(seed: int = 0, **changes: Any) -> GPT2LMHeadModel:
    """A GPT-2 of transformers in eager mode, its weights random and far from zero."""
    config = TheirConfig(**{**TINY, **changes}, attn_implementation="eager")
    config.bos_token_id = config.eos_token_id = config.vocab_size - 1
    model = GPT2LMHeadModel(config).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1:
            parameter.copy_(0.1 * noise + (1.0 if "ln_" in name and "weight" in name else 0.0))
        else:
            parameter.copy_(noise * (0.5 if "wte" in name or "wpe" in name else 1.0) / 32**0.5)
    return model


def everything(module: nn.Module) -> list[tuple[str, str, Any]]:
    """Every attribute of every submodule by identity, including hooks and buffers."""
    found: list[tuple[str, str, Any]] = []
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            inside = tuple(map(id, value.values())) if isinstance(value, dict) else id(value)
            found.append((name, key, inside))
    return found


def ours_of(theirs: Any) -> GPT2:
    """Our model with the weights of theirs."""
    state = theirs.state_dict()
    if theirs.config.tie_word_embeddings:
        del state["lm_head.weight"]
    return adopt(state, check_config(theirs.config.to_dict(), "a test"))


def some_ids(T: int, vocab_size: int, seed: int = 0) -> Tensor:
    return torch.randint(vocab_size, (1, T), generator=torch.Generator().manual_seed(seed))


def trace_of(run: Run, config: GPT2Config) -> Trace:
    q, k, v = run.qkv[:, :, 0].numpy()
    return Trace(
        model="a test",
        text="",
        details=(Token(0, b"", "", "text"),) * q.shape[2],
        q=q,
        k=k,
        v=v,
        logits=run.logits[0].numpy(),
        scales=tuple(map(config.scale, range(config.n_layers))),
    )


def fingerprint(model: GPT2) -> str:
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(key.encode() + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
