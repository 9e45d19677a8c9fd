"""Measures a checkpoint: its loss, its heads, and samples of its text.

    python scripts/measure.py --corpus stories.txt [FOLDER]

Prints the held-out loss (on the last 1% of the corpus, which is not trained on), the strongest
previous-token, induction and first-token heads, and three sampled continuations. FOLDER is a GPT-2
folder, by default the bundled one.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from train import HELD_OUT, encode_corpus, held_out_loss

from mha_viz.checkpoints import BUNDLED, load
from mha_viz.head import Head
from mha_viz.heads import patterns
from mha_viz.heads.repeated import TWICE, repeated_tokens
from mha_viz.model import Model
from mha_viz.trace import Array

SEEDS = 5  # of the random tokens
OPENINGS = ("Once upon a time", "The old man looked at the sea and", '"Where are you going?" said')


def each_head(
    model: Model, sequences: Sequence[Tensor], measure: Callable[[Array], float]
) -> NDArray[np.float64]:
    """`[L, H]`: the mean of a measure over sequences of token ids."""
    traces = [model.trace_ids(ids.tolist()) for ids in sequences]
    L, H = model.config.n_layers, model.config.n_heads
    scores = [
        np.mean([measure(trace.pattern(layer, head)) for trace in traces])
        for layer in range(L)
        for head in range(H)
    ]
    return np.array(scores).reshape(L, H)


def report(name: str, scores: NDArray[np.float64], goal: float) -> None:
    """Prints the three best heads and the goal."""
    order = np.argsort(-scores, axis=None)[:3]
    H = scores.shape[1]
    heads = ", ".join(f"{Head(i // H, i % H).label} {scores.flat[i]:.2f}" for i in order)
    print(f"{name:<42} {heads}   (goal {goal})")


@torch.inference_mode()
def sample(model: Model, opening: str, seed: int, *, n: int = 60, temperature: float = 0.7) -> str:
    """The opening and `n` sampled tokens, none of which is <|endoftext|>."""
    rng = torch.Generator().manual_seed(seed)
    ids = model.encode(opening)[0]
    end = model.config.vocab_size - 1
    for _ in range(n):
        logits = model.network.run(torch.tensor([ids])).logits[0]
        logits[end] = -torch.inf
        top = logits.topk(40)
        probabilities = (top.values / temperature).softmax(-1)
        sampled = torch.multinomial(probabilities, 1, generator=rng)
        ids.append(int(top.indices[sampled]))
    return b"".join(token.bytes for token in model.read(ids)).decode("utf-8", "replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", default=str(BUNDLED))
    parser.add_argument("--corpus", required=True, help="the text that the model was trained on")
    args = parser.parse_args()

    model = load(Path(args.folder), device="cpu")
    text = Path(args.corpus).read_text(encoding="utf-8")
    ids = encode_corpus(model.tokenizer, text)
    held_out = ids[int(len(ids) * (1 - HELD_OUT)) :]
    print(f"{args.folder}: {model.description.n_parameters:,} parameters")
    for length in (256, 1024):
        loss = held_out_loss(model.network, held_out, length, limit=10**6)
        print(f"held-out loss, windows of {length:>4} from position 0   {loss:.3f} nats per token")

    random = [torch.tensor(repeated_tokens(model, *TWICE, seed).ids) for seed in range(SEEDS)]
    prose = list(held_out[: 8 * 256].view(8, 256))
    induction = each_head(model, random, lambda pattern: patterns.induction(pattern, TWICE[0]))
    report(f"induction, {TWICE[0]} random tokens, repeated", induction, 0.9)
    previous, first = patterns.previous_token, patterns.first_token
    report("previous token, on the same tokens", each_head(model, random, previous), 0.9)
    report("previous token, on held-out prose", each_head(model, prose, previous), 0.9)
    report("first token, on held-out prose", each_head(model, prose, first), 0.8)
    for seed, opening in enumerate(OPENINGS):
        print(f"\n{sample(model, opening, seed)}")


if __name__ == "__main__":
    main()
