"""How fast a model writes with fewer key/value heads, measured.

Each step of decoding reads all weights and the whole cache. Sharing keys and values shrinks the
cache, so it helps most where the cache is large beside the weights: with long texts and many of
them at once (Shazeer 2019, section 3).
"""

import time
from collections.abc import Iterator, Sequence

import torch

from mha_viz.lessons.grouped_query import grouped_gpt2
from mha_viz.network import Network


@torch.inference_mode()
def decoding_speeds(
    network: Network, groups: Sequence[int], ids: Sequence[int], *, n_new: int, repeats: int
) -> Iterator[tuple[int, float]]:
    """Yields (G, tokens per second): for each G in turn, `repeats` times.

    The cache holds the keys and values of `ids` before the clock starts; then `n_new` tokens are
    decoded one by one. Raises ShapeError if a G does not divide the model's own, or if the tokens
    do not fit n_positions.
    """
    own = network.config.n_kv_heads or network.config.n_heads
    networks = {G: network if own == G else grouped_gpt2(network, G) for G in groups}
    for _ in range(repeats):  # in turn, so that a busy moment of the machine hits all of them
        for G, shared in networks.items():
            yield G, _tokens_per_second(shared, ids, n_new)


def _tokens_per_second(network: Network, ids: Sequence[int], n_new: int) -> float:
    cache = network.empty_cache(len(ids) + n_new)
    given = torch.tensor([ids], device=network.device)
    token = network(given, cache=cache)[:, -1:].argmax(dim=-1)
    start = time.perf_counter()
    for _ in range(n_new):
        token = network(token, cache=cache)[:, -1:].argmax(dim=-1)
    token.tolist()  # waits for a GPU
    return n_new / (time.perf_counter() - start)
