"""Measures a checkpoint: what it learnt, which heads it grew, and how it writes.

    python scripts/measure.py --corpus stories.txt [FOLDER]

Prints the held-out loss (the last 1 % of the corpus, which training never sees), the strongest
previous-token, induction and first-token heads, and three sampled continuations. FOLDER is a GPT-2
folder; the bundled one unless given.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from train import HELD_OUT, encode_corpus, held_out_loss

from mha_viz.checkpoints import BUNDLED, load
from mha_viz.model import Model

SEEDS = 5  # of the random tokens
SEGMENT = 64  # random tokens, written twice
OPENINGS = ("Once upon a time", "The old man looked at the sea and", '"Where are you going?" said')


def patterns_of(model: Model, ids: Tensor) -> Tensor:
    """Patterns `[L, H, T, T]` of one sequence of ids."""
    q, k, _ = model.network.run(ids[None]).qkv[:, :, 0]
    scales = torch.tensor([model.config.scale(i) for i in range(model.config.n_layers)])
    scores = (q @ k.mT) * scales[:, None, None, None]
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


def repeated_tokens(vocab_size: int, seed: int) -> Tensor:
    """`SEGMENT` random tokens and the same again, as Olsson et al. 2022 test induction."""
    rng = torch.Generator().manual_seed(seed)
    segment = torch.randint(vocab_size - 1, (SEGMENT,), generator=rng)
    return segment.repeat(2)


def induction(patterns: Tensor) -> Tensor:
    """`[L, H]`: weight on the token after the earlier copy of this one, over the second copy."""
    return patterns.diagonal(1 - SEGMENT, dim1=-2, dim2=-1)[..., 1:].mean(-1)


def previous_token(patterns: Tensor) -> Tensor:
    """`[L, H]`: weight on position i - 1, over i >= 1."""
    return patterns.diagonal(-1, dim1=-2, dim2=-1).mean(-1)


def first_token(patterns: Tensor) -> Tensor:
    """`[L, H]`: weight on position 0, over i >= 1."""
    return patterns[..., 1:, 0].mean(-1)


def report(name: str, scores: Tensor, goal: float) -> None:
    """One line: the best head, the next ones, and the goal."""
    order = scores.flatten().argsort(descending=True)[:3]
    H = scores.shape[1]
    heads = ", ".join(f"L{int(i) // H} H{int(i) % H} {scores.flatten()[i]:.2f}" for i in order)
    print(f"{name:<42} {heads}   (goal {goal})")


@torch.inference_mode()
def sample(model: Model, opening: str, seed: int, *, n: int = 60, temperature: float = 0.7) -> str:
    """The opening and `n` sampled tokens, without the end of a text among them."""
    rng = torch.Generator().manual_seed(seed)
    ids = model.encode(opening)[0]
    end = model.config.vocab_size - 1
    for _ in range(n):
        logits = model.network.run(torch.tensor([ids])).logits[0]
        logits[end] = -torch.inf
        best = logits.topk(40)
        probabilities = (best.values / temperature).softmax(-1)
        chosen = torch.multinomial(probabilities, 1, generator=rng)
        ids.append(int(best.indices[chosen]))
    return b"".join(token.bytes for token in model.read(ids)).decode("utf-8", "replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", default=str(BUNDLED))
    parser.add_argument("--corpus", required=True, help="the text of the training")
    args = parser.parse_args()

    model = load(Path(args.folder), device="cpu")
    text = Path(args.corpus).read_text(encoding="utf-8")
    ids = encode_corpus(model.tokenizer, text)
    held_out = ids[int(len(ids) * (1 - HELD_OUT)) :]
    print(f"{args.folder}: {model.description.n_parameters:,} parameters")
    for length in (256, 1024):
        loss = held_out_loss(model.network, held_out, length, limit=10**6)
        print(f"held-out loss, windows of {length:>4} from position 0   {loss:.3f} nats a token")

    random = [
        patterns_of(model, repeated_tokens(model.config.vocab_size, seed)) for seed in range(SEEDS)
    ]
    prose = [patterns_of(model, window) for window in held_out[: 8 * 256].view(8, 256)]
    on_random, on_prose = torch.stack(random), torch.stack(prose)
    report(f"induction, {SEGMENT} random tokens twice", induction(on_random).mean(0), 0.9)
    report("previous token, on the same", previous_token(on_random).mean(0), 0.9)
    report("previous token, on held-out prose", previous_token(on_prose).mean(0), 0.9)
    report("first token, on held-out prose", first_token(on_prose).mean(0), 0.8)
    for seed, opening in enumerate(OPENINGS):
        print(f"\n{sample(model, opening, seed)}")


if __name__ == "__main__":
    main()
