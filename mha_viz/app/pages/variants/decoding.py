"""Tokens per second of decoding with all, some and one key/value head, measured on the server."""

from collections.abc import Mapping, Sequence
from statistics import median

from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.tables import table
from mha_viz.app.work.progress import results
from mha_viz.figures.text import format_bytes
from mha_viz.lessons.counting import kv_cache_bytes
from mha_viz.lessons.decoding import decoding_speeds

N_NEW = 32  # tokens that each run decodes
CONTEXT = 512  # tokens in the cache before them
REPEATS = 5


def show(view: View, G: int, own: int) -> None:
    """A table of speeds for the model's own G, the selected one and 1; after a click."""
    groups = sorted({own, G, 1}, reverse=True)
    ids = _context(view)
    caption(
        "Decoding speed",
        f"Tokens per second on {view.model.device.type}, one text, {len(ids)} tokens in the cache, "
        f"then {N_NEW} more; {REPEATS} runs for each G, in turn.",
    )
    if view.model.config.n_positions <= N_NEW:
        explained.paragraph(f"This model's context is too short to decode {N_NEW} tokens.")
        return
    network = view.model.network
    found, _ = results(
        f"decoding {view.model.key} {groups} {view.model.device.type}",
        lambda report: decoding_speeds(network, groups, ids, n_new=N_NEW, repeats=REPEATS),
        total=len(groups) * REPEATS,
        what="runs",
        cost=f"Decodes {N_NEW} tokens {REPEATS} times for each of G = {_listed(groups)}.",
        lane="decoding",
    )
    speeds = {n: [speed for of, speed in found if of == n] for n in groups}
    if not all(speeds.values()):
        return
    config, n_bytes = view.model.config, network.dtype.itemsize
    size = {
        n: kv_cache_bytes(
            config.n_layers, n, config.d_head, n_tokens=len(ids), bytes_per_value=n_bytes
        )
        for n in groups
    }
    header = ["G", "tokens per second", "from", "to", "cache"]
    rows = [
        [n, round(median(s), 1), round(min(s), 1), round(max(s), 1), format_bytes(size[n])]
        for n, s in speeds.items()
    ]
    table(header, rows, key="decoding_table", alt=comparison(speeds))
    explained.paragraph(comparison(speeds))
    weights = view.about.n_parameters * n_bytes
    explained.note(
        f"Every step reads all weights ({format_bytes(weights)}) and the cache "
        f"({format_bytes(size[own])} for G = {own}); sharing shrinks the cache, and W_K and W_V "
        "with it. The gain is largest with long texts in large batches (Shazeer 2019, section 3)."
    )
    download_table("decoding.csv", ["G", "tokens per second"], [[n, s] for n, s in found])


def comparison(speeds: Mapping[int, Sequence[float]]) -> str:
    """How the smallest G compares with the largest."""
    most, least = max(speeds), min(speeds)
    if most == least:
        return f"G = {most}: {median(speeds[most]):.1f} tokens per second."
    ratio = median(speeds[least]) / median(speeds[most])
    text = f"G = {least} decodes **{ratio:.2f}×** as fast as G = {most} (medians)"
    if max(speeds[most]) < min(speeds[least]) or max(speeds[least]) < min(speeds[most]):
        return f"{text}; the ranges do not overlap."
    return f"{text}; the ranges overlap, so the difference may be chance."


def _context(view: View) -> list[int]:
    """The tokens of the text, repeated until they fill the context."""
    ids = view.trace.token_ids
    length = max(1, min(CONTEXT, view.model.config.n_positions - N_NEW))
    return (ids * (length // len(ids) + 1))[:length]


def _listed(groups: Sequence[int]) -> str:
    *first, last = map(str, groups)
    return f"{', '.join(first)} and {last}" if first else last
