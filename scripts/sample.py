"""Writes the bundled text of the Training page: stories sampled from the bundled model.

    python scripts/sample.py --out assets/training.txt [--corpus stories.txt]

Each story continues one of the openings below, with its own seed, and ends with its last complete
sentence. Given the corpus that the model was trained on, prints the longest passage that both texts
share, which the model may have memorised.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mha_viz.analysis.generation import Sampling, generate
from mha_viz.checkpoints import load
from mha_viz.model import Model

N_CHARACTERS = 300_000
BASE = 6_364_136_223_846_793_005  # odd, so that it has an inverse modulo 2^64
N_NEW = 500  # tokens per story, about 1,800 characters
TEMPERATURE, TOP_P = 0.9, 0.95
OPENINGS = (
    "A miller had three cats, and the smallest of them could count.",
    "Nobody in the village knew who lit the lamp on the hill.",
    "The ferryman would carry anything across the river except a secret.",
    '"If you open that box," said the old woman, "you must also close it."',
    "In the winter when the wells froze, a girl walked to the sea for salt.",
    "There was a clock in the tower that ran only while people sang.",
    "The king's youngest son had never won a race, nor lost his way.",
    "A fox and a tailor shared one coat between them.",
    "The captain counted his men at dawn and found one too many.",
    '"Where does the road go?" asked the boy, and the crow laughed.',
    "Far up in the mountains stood a house with a door on every side.",
    "The baker's daughter dreamed each night of the same white horse.",
    "On the island there grew a single tree, and under it sat a giant.",
    "The letter came on a Tuesday, and it was addressed to the dog.",
    "Two brothers inherited a field, and a stone lay in the middle of it.",
    "The queen had a garden in which every flower told the truth.",
    '"I have lost my shadow," said the pedlar, and sat down by the fire.',
    "At midnight the toy soldiers changed the guard without a sound.",
    "An owl once kept a school in the hollow of a beech.",
    "The detective looked at the muddy boots, and then at the clean floor.",
)


def stories(model: Model, seed: int) -> Iterator[str]:
    """Endless stories: the openings in turn, with a new seed for each."""
    while True:
        opening = OPENINGS[seed % len(OPENINGS)]
        ids = model.encode(opening)[0]
        sampling = Sampling(temperature=TEMPERATURE, top_p=TOP_P, seed=seed)
        ids += generate(model.network, ids, N_NEW, sampling=sampling)
        text = b"".join(token.bytes for token in model.read(ids)).decode("utf-8", "ignore")
        yield complete_sentences(text)
        seed += 1


def complete_sentences(text: str) -> str:
    """The text up to its last full stop, question mark or exclamation mark."""
    end = max(text.rfind(mark) for mark in ".!?")
    return text[: end + 1].strip()


def longest_shared(text: str, corpus: str) -> str:
    """The longest passage of `text` that is also in `corpus`, by bisection over its length."""
    best, shortest, longest = "", 1, 512
    while shortest <= longest:
        length = (shortest + longest) // 2
        hits = np.flatnonzero(np.isin(hashes(text, length), hashes(corpus, length)))
        passage = next((p for i in hits if (p := text[i : i + length]) in corpus), "")
        if passage:
            best, shortest = passage, length + 1
        else:
            longest = length - 1
    return best


def hashes(text: str, length: int) -> NDArray[np.uint64]:
    """A hash of each passage of `length` characters: a polynomial of its codes modulo 2^64."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    sums = np.concatenate(
        [np.zeros(1, dtype=np.uint64), np.cumsum(codes * powers(BASE, len(codes)))]
    )
    n = max(len(codes) - length + 1, 0)
    # Divided by BASE^i, so that the position i of a passage does not matter.
    inverse = pow(BASE, -1, 2**64)
    passages: NDArray[np.uint64] = (sums[length:] - sums[:n]) * powers(inverse, n)
    return passages


def powers(base: int, n: int) -> NDArray[np.uint64]:
    """1, base, base^2 … modulo 2^64."""
    factors = np.full(n, base, dtype=np.uint64)
    factors[:1] = 1
    return np.cumprod(factors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="the file to write")
    parser.add_argument("--corpus", type=Path, help="the text that the model was trained on")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first story")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = load("bundled", device="cpu")
    finished: list[str] = []
    n = 0
    for story in stories(model, args.seed):
        finished.append(story)
        n += len(story) + 2
        print(f"{len(finished)} stories, {n:,} characters", end="\r", file=sys.stderr, flush=True)
        if n >= N_CHARACTERS:
            break
    text = "\n\n".join(finished) + "\n"
    args.out.write_text(text, encoding="utf-8")
    print(
        f"{args.out}: {len(finished)} stories, {len(text):,} characters, {len(set(text))} distinct"
    )
    if args.corpus:
        shared = longest_shared(text, args.corpus.read_text(encoding="utf-8"))
        print(f"longest passage shared with the corpus: {len(shared)} characters\n{shared!r}")


if __name__ == "__main__":
    main()
