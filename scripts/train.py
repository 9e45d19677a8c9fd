"""Trains the bundled checkpoint: a small GPT-2 on plain text, seeded, resumable, on a CPU.

    python scripts/train.py --corpus stories.txt --out runs/bundled

The text has one paragraph per line. The same command resumes a run that was stopped. `--init
FOLDER` starts from the weights and the tokenizer of a GPT-2 folder, in the middle of the schedule.
`python scripts/measure.py FOLDER` prints what the model learnt.

Windows whose second part repeats the first (half of them random tokens) reward induction early.
Windows at random offsets train all position embeddings. Long windows come last.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mha_viz.checkpoints.folder import read_weights, write_folder
from mha_viz.checkpoints.names import adopt, gpt2_state
from mha_viz.gpt2 import GPT2, GPT2Config

BUNDLED = GPT2Config(n_layers=4, n_heads=6, d_model=192, d_mlp=768, vocab_size=4096)
HELD_OUT = 0.01  # the last part of the text, which is not trained on
TOKENS_PER_STEP = 4096
PHASES = ((0.50, 128), (0.88, 256), (1.00, 1024))  # (end, as a fraction; window length)
WARM_UP = 150  # steps
LR_MUON, LR_ADAMW, LR_FLOOR = 0.02, 2e-3, 0.05
END_OF_TEXT = "<|endoftext|>"


@dataclass
class Progress:
    """The state of a run besides weights and optimizers."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0


def train_tokenizer(text: str, vocab_size: int) -> Tokenizer:
    """A byte-level BPE in GPT-2's format; the last id is <|endoftext|>."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    tokenizer.add_special_tokens([END_OF_TEXT])
    return tokenizer


def encode_corpus(tokenizer: Tokenizer, text: str) -> Tensor:
    """All token ids of the text; each paragraph keeps its final newline."""
    paragraphs = text.splitlines(keepends=True)
    encoded = tokenizer.encode_batch(paragraphs)
    return torch.from_numpy(np.concatenate([np.asarray(e.ids, dtype=np.int64) for e in encoded]))


class Windows:
    """Batches `[B, T + 1]` of token ids: windows of the text, and some that repeat themselves."""

    def __init__(self, ids: Tensor, newline: int, vocab_size: int) -> None:
        self.ids = ids
        self.starts = (ids[:-1] == newline).nonzero().flatten() + 1
        self.vocab_size = vocab_size

    def batch(self, length: int, fraction: float, rng: torch.Generator) -> Tensor:
        """A batch at this fraction of the schedule; repeats are rarer in the second half.

        Half of the windows of text start at a paragraph.
        """
        repeats = 0.35 if fraction < 0.5 else 0.15
        rows = []
        for _ in range(TOKENS_PER_STEP // length):
            if torch.rand((), generator=rng) < repeats:
                rows.append(self._repeat(length + 1, rng))
            else:
                rows.append(self._text(length + 1, rng))
        return torch.stack(rows)

    def _text(self, length: int, rng: torch.Generator) -> Tensor:
        last = len(self.ids) - length
        start = int(torch.randint(last, (), generator=rng))
        if torch.rand((), generator=rng) < 0.5:
            choice = int(torch.randint(len(self.starts), (), generator=rng))
            start = min(int(self.starts[choice]), last)
        return self.ids[start : start + length]

    def _repeat(self, length: int, rng: torch.Generator) -> Tensor:
        period = int(torch.randint(8, length // 2 + 1, (), generator=rng))
        if torch.rand((), generator=rng) < 0.5:
            segment = torch.randint(self.vocab_size - 1, (period,), generator=rng)
        else:
            segment = self._text(period, rng)
        return segment.repeat(math.ceil(length / period))[:length]


def phase_length(fraction: float) -> int:
    """The window length at this fraction of the schedule."""
    return next(length for end, length in PHASES if fraction < end or end == 1.0)


def learning_rate(step: int, fraction: float) -> float:
    """The factor on the peak learning rate: a short warm-up, then a cosine down to the floor."""
    cosine = LR_FLOOR + (1 - LR_FLOOR) * 0.5 * (1 + math.cos(math.pi * min(fraction, 1.0)))
    return min(1.0, (step + 1) / WARM_UP) * cosine


def optimizers(model: GPT2, peak: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for embeddings, biases and norms."""
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    with_muon = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in with_muon]
    muon = torch.optim.Muon(matrices, lr=LR_MUON * peak, weight_decay=0.05)
    adamw = torch.optim.AdamW(others, lr=LR_ADAMW * peak, betas=(0.9, 0.98), weight_decay=0.0)
    for optimizer in (muon, adamw):
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return [muon, adamw]


def random_start(config: GPT2Config) -> GPT2:
    """A model initialised with N(0, 0.02²), narrower for projections into the residual stream.

    Radford et al. 2019, section 2.3.
    """
    model = GPT2(config)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            into_residual = name.endswith(("W_O.weight", "W_out.weight"))
            std = 0.02 / math.sqrt(2 * config.n_layers) if into_residual else 0.02
            torch.nn.init.normal_(parameter, std=std)
        elif name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    return model


@torch.no_grad()
def held_out_loss(model: GPT2, ids: Tensor, length: int = 256, limit: int = 64) -> float:
    """Nats per token over the first windows of the held-out text, each from position 0."""
    windows = ids[: len(ids) // (length + 1) * (length + 1)].view(-1, length + 1)[:limit]
    losses = [
        F.cross_entropy(model(w[:, :-1]).flatten(0, 1), w[:, 1:].flatten())
        for w in windows.split(16)
    ]
    return float(torch.stack(losses).mean())


def steps(progress: Progress, budget: int, begin: float) -> Iterator[float]:
    """Yields the fraction of the schedule that is done, until the budget of tokens is spent."""
    while progress.tokens < budget:
        yield begin + (1 - begin) * progress.tokens / budget


def train(args: argparse.Namespace) -> None:
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    resume = out / "resume.pt"
    torch.manual_seed(args.seed)
    rng = torch.Generator().manual_seed(args.seed)
    text = Path(args.corpus).read_text(encoding="utf-8")

    if args.init:
        config, state, _ = read_weights(Path(args.init), args.init)
        tokenizer = Tokenizer.from_file(str(Path(args.init) / "tokenizer.json"))
        model = adopt(state.tensors, config)
    else:
        tokenizer = train_tokenizer(text, BUNDLED.vocab_size)
        model = random_start(BUNDLED)
    model.requires_grad_(True).train()
    model.W_U.weight = model.token_embedding.weight
    ids = encode_corpus(tokenizer, text)
    split = int(len(ids) * (1 - HELD_OUT))
    newline = tokenizer.encode("\n").ids[0]
    windows = Windows(ids[:split], newline, model.config.vocab_size)
    opts = optimizers(model, args.peak)
    progress = Progress()
    if resume.exists():
        saved = torch.load(resume, weights_only=True)
        model.load_state_dict(saved["model"])
        for optimizer, opt_state in zip(opts, saved["optimizers"], strict=True):
            optimizer.load_state_dict(opt_state)
        progress = Progress(**saved["progress"])
        rng.set_state(saved["rng"])
        print(f"resumed at step {progress.step}, {progress.tokens:,} tokens", flush=True)
    print(f"{len(ids):,} tokens, {len(ids) - split:,} of them held out", flush=True)

    def save() -> None:
        payload = {
            "model": model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in opts],
            "progress": vars(progress),
            "rng": rng.get_state(),
        }
        torch.save(payload, resume.with_suffix(".new"))
        resume.with_suffix(".new").replace(resume)
        write_folder(out, model.config, gpt2_state(model), tokenizer, dtype=torch.float16)

    began = time.monotonic() - progress.seconds
    running = None
    for fraction in steps(progress, args.tokens, 0.5 if args.init else 0.0):
        length = phase_length(fraction)
        batch = windows.batch(length, fraction, rng)
        n_positions = model.config.n_positions
        offset = 0
        if torch.rand((), generator=rng) > 0.6:
            offset = int(torch.randint(n_positions - length + 1, (), generator=rng))
        logits = model(batch[:, :-1], offset=offset)
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        done = progress.tokens / args.tokens if args.init else fraction
        for optimizer in opts:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * learning_rate(progress.step, done)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        progress.step += 1
        progress.tokens += batch.shape[0] * length
        progress.seconds = time.monotonic() - began
        if progress.step % 20 == 0:
            rate = progress.tokens / progress.seconds
            print(
                f"step {progress.step}  {progress.tokens / args.tokens:6.1%}  "
                f"{progress.tokens / 1e6:.2f} M tokens  loss {running:.3f}  "
                f"{rate:,.0f} tokens/s  {(args.tokens - progress.tokens) / rate / 60:.0f} min left",
                flush=True,
            )
        if progress.step % 200 == 0:
            print(f"  held out {held_out_loss(model, ids[split:]):.3f}", flush=True)
            save()
    save()
    record = {"tokens": progress.tokens, "steps": progress.step, "seed": args.seed}
    (out / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"held out {held_out_loss(model, ids[split:]):.3f} after {progress.step} steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", required=True, help="plain text, one paragraph per line")
    parser.add_argument(
        "--out", required=True, help="folder for the checkpoint and the run's state"
    )
    parser.add_argument("--init", help="GPT-2 folder to start from")
    parser.add_argument("--tokens", type=lambda s: int(float(s)), default=35_000_000)
    parser.add_argument("--peak", type=float, default=1.0, help="factor on the learning rates")
    parser.add_argument("--seed", type=int, default=0)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
