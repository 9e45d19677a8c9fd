"""What each product of the walkthrough multiplies, large, with the numbers of the chosen token."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
import torch

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption
from mha_viz.app.widgets.chart import chart, square
from mha_viz.app.widgets.recipes import recipe
from mha_viz.attention import MultiHeadAttention
from mha_viz.export import Drawn, Given, columns_data, matrix_data
from mha_viz.figures.contributions import contributions_figure, contributions_height
from mha_viz.figures.projection import projection_figure, projection_height
from mha_viz.figures.score_sum import HEIGHT, score_sum_figure, scores_figure
from mha_viz.figures.text import with_minus
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.figures.weighted_values import weighted_values_figure, weighted_values_height
from mha_viz.lessons.operands import Operands, operands_of, operands_of_layer


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The operands of a layer, and the token, the key and the head whose numbers are shown."""

    operands: Operands
    heads: tuple[int, ...]  # the layer's heads by their number in the model
    index: int  # of the selected head among them
    query: int
    key: int
    tokens: tuple[str, ...]
    given: Mapping[str, Any]  # what scripts need to compute the operands

    @property
    def token(self) -> str:
        """The query's token, as HTML."""
        return f"<b>{escaped(self.tokens[self.query])}</b>"

    @property
    def key_token(self) -> str:
        """The key's token, as HTML."""
        return f"<b>{escaped(self.tokens[self.key])}</b>"


def show(
    view: View, step: str, *, T: int, index: int, query: int | None = None, key: int | None = None
) -> None:
    """The operands of the product that makes `step`, on the first `T` tokens of the text.

    `index` is that of the head among those that the layer has. By default the query is the selected
    token, and the key the one that it looks at most. Other steps show nothing.
    """
    if step not in DRAWINGS:
        return
    found = _operands_on_text(view.trace_key, view.layer, T, _view=view)
    given = {
        "ids": Given(None, "torch.tensor([trace.token_ids[:T]], device=model.device)"),
        "operands": Given(found, "operands_of_layer(model.network, ids, layer)"),
        "tokens": Given(view.trace.tokens[:T], "trace.tokens[:T]"),
        "T": T,
    }
    heads = tuple(view.model.config.kept_heads(view.layer))
    query = min(view.token if query is None else query, T - 1)
    _show(view, step, found, given, view.trace.tokens[:T], heads, index, query, key)


def show_random(
    view: View,
    step: str,
    attention: MultiHeadAttention,
    x: torch.Tensor,
    given: Mapping[str, Any],
    *,
    index: int,
    query: int,
    key: int,
) -> None:
    """The same for a random layer, which reads the stream `x` as it is.

    `given` computes `attention` and `x` in scripts.
    """
    if step not in DRAWINGS:
        return
    found = operands_of(attention, x, x)
    T = len(found.x)
    tokens, heads = tuple(map(str, range(T))), tuple(range(attention.n_heads))
    of = {**given, "operands": Given(found, "operands_of(attention, x, x)"), "tokens": tokens}
    _show(view, step, found, of, tokens, heads, index, query, key)


@st.cache_resource(max_entries=4, show_spinner=False)
def _operands_on_text(trace_key: str, layer: int, T: int, *, _view: View) -> Operands:
    ids = torch.tensor([_view.trace.token_ids[:T]], device=_view.model.device)
    return operands_of_layer(_view.model.network, ids, layer)


def _show(
    view: View,
    step: str,
    found: Operands,
    given: Mapping[str, Any],
    tokens: tuple[str, ...],
    heads: tuple[int, ...],
    index: int,
    query: int,
    key: int | None,
) -> None:
    if not heads:
        return
    strongest = int(found.pattern[index, query].argmax())
    key = strongest if key is None else min(key, len(tokens) - 1)
    of = {**given, "index": index, "query": query, "key": key, "heads": heads}
    DRAWINGS[step](view, Choice(found, heads, index, query, key, tokens, of))


def _projection(view: View, choice: Choice) -> None:
    """All of q, k and v in one product: x @ W_QKV."""
    found, head = choice.operands, choice.heads[choice.index]
    C, width = found.W_QKV.shape
    caption(
        "x @ W_QKV",
        f"W is {_matrices(found)} of [{C}, {found.attention.d_head}] side by side. The ringed row "
        f"of x times the ringed columns of W is q of {choice.token} in head {head}.",
        f" Grey: the k and v that this head reads. In GPT-2, W_QKV is <code>c_attn</code>, "
        f"[{C}, {3 * C}].",
    )
    T = len(found.x)
    chart(
        recipe(view, _draw_projection, **choice.given),
        key="operands_projection",
        name="x @ W_QKV = q k v",
        height=projection_height(T),
        alt=f"x [{T}, {C}] times W_QKV [{C}, {width}] is q, k and v [{T}, {width}].",
    )


def _matrices(found: Operands) -> str:
    """How many matrices W_QKV consists of, and whose."""
    H, G = found.attention.n_heads, found.attention.n_kv_heads
    whose = f"q, k and v of {_heads(H)}" if G == H else f"q of {_heads(H)}, k and v of {G}"
    return f"{H + 2 * G} matrices ({whose})"


def _heads(n: int) -> str:
    return f"{n} head" if n == 1 else f"{n} heads"


def _draw_projection(
    operands: Operands,
    tokens: Sequence[str],
    heads: Sequence[int],
    index: int,
    query: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    figure = projection_figure(
        operands.x,
        operands.W_QKV,
        operands.qkv,
        tokens,
        theme,
        heads=heads,
        n_kv_heads=operands.attention.n_kv_heads,
        query=query,
        selected=index,
        sizes=sizes,
    )
    arrays = {"x": operands.x, "W_QKV": operands.W_QKV, "q k v": operands.qkv, "tokens": tokens}
    data = matrix_data(
        operands.qkv, ("position", tokens), ("column", ()), value="q k v", arrays=arrays
    )
    return figure, data


def _scores(view: View, choice: Choice) -> None:
    """The product q . k of one pair, and its place among all scores of the head."""
    found, head, T = choice.operands, choice.heads[choice.index], len(choice.tokens)
    d_h, scale = found.attention.d_head, found.attention.scale
    score = found.score(choice.index, choice.query, choice.key)
    scaled = f"divided by √{d_h}" if np.isclose(scale, d_h**-0.5) else f"times {scale:.3g}"
    left, right = st.columns([5, 3], gap="medium")
    with left:
        caption(
            "q @ kᵀ",
            f"Head {head}: q of {choice.token} times k of {choice.key_token}. {d_h} products, one "
            f"sum, {scaled}. {_what_the_score_gets(choice)}",
        )
        chart(
            recipe(view, _draw_score, **choice.given),
            key="operands_score",
            name="One score",
            height=HEIGHT,
            alt=f"{d_h} products add up to {score.total:.2f}; {scaled}, {score.score:.2f}.",
        )
    with right:
        caption("s", f"[{T}, {T}] of head {head}, before the mask. Blue: below 0. Orange: above 0.")
        square(
            recipe(view, _draw_scores, **choice.given),
            key="operands_scores",
            name=f"Scores of head {head} before the mask",
            alt=f"The scores of {T} queries and {T} keys; {score.score:.2f} is ringed.",
        )


def _what_the_score_gets(choice: Choice) -> str:
    """The weight that the score turns into, and why, as HTML."""
    score = choice.operands.score(choice.index, choice.query, choice.key).score
    weights = choice.operands.weighted_values(choice.index, choice.query)
    if choice.key >= weights.n_seen:
        return "This key comes later, so the mask will hide it."
    weight = float(weights.weights[choice.key])
    said = with_minus(f"The score {score:.2f} will become the weight {weight:.2f}")
    if score < 0 and weight == weights.weights.max() and weights.n_seen > 1:
        return f"{said}: it is negative, yet the largest unmasked score of its row."
    return f"{said}."


def _draw_score(
    operands: Operands,
    tokens: Sequence[str],
    index: int,
    query: int,
    key: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    score = operands.score(index, query, key)
    names = (tokens[query], tokens[key])
    scale, result = score.scale, score.score
    figure = score_sum_figure(
        score.q, score.k, names, theme, scale=scale, score=result, sizes=sizes
    )
    data = columns_data(
        element=range(len(score.q)),
        q=score.q,
        k=score.k,
        q_times_k=score.products,
        sum_so_far=score.sums,
    )
    return figure, data


def _draw_scores(
    operands: Operands,
    tokens: Sequence[str],
    index: int,
    query: int,
    key: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    scores = operands.scores[index]
    figure = scores_figure(scores, tokens, theme, query=query, key=key, sizes=sizes)
    arrays = {"scores": scores, "tokens": tokens}
    data = matrix_data(scores, ("query", tokens), ("key", tokens), value="score", arrays=arrays)
    return figure, data


def _weighted_values(view: View, choice: Choice) -> None:
    """The rows of v, weighted: w @ v."""
    found, head, T = choice.operands, choice.heads[choice.index], len(choice.tokens)
    H, G, d_h = found.attention.n_heads, found.attention.n_kv_heads, found.attention.d_head
    shared = "" if G == H else f" v is shared by {H // G} heads."
    caption(
        "w @ v",
        f"Head {head}: each row of v times its weight for {choice.token}, all added up. The "
        f"weights add up to 1, so z is a weighted mean.{shared}",
        f" w [{H}, {T}, {T}] @ v [{H}, {T}, {d_h}] = z [{H}, {T}, {d_h}].",
    )
    row = found.weighted_values(choice.index, choice.query)
    chart(
        recipe(view, _draw_weighted_values, **choice.given),
        key="operands_values",
        name="Weights times values",
        height=weighted_values_height(T),
        alt=f"{row.n_seen} weights, the largest {row.weights.max():.2f}, times rows of {d_h} "
        f"values; z has the length {np.linalg.norm(row.z):.2f}.",
    )


def _draw_weighted_values(
    operands: Operands,
    tokens: Sequence[str],
    index: int,
    query: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    row = operands.weighted_values(index, query)
    figure = weighted_values_figure(
        row.weights,
        row.values,
        row.z,
        tokens,
        theme,
        n_seen=row.n_seen,
        query=query,
        sizes=sizes,
    )
    arrays = {"weights": row.weights, "values": row.values, "z": row.z, "tokens": tokens}
    columns = ("element", ())
    data = matrix_data(row.values, ("key", tokens), columns, value="value", arrays=arrays)
    return figure, data


def _contributions(view: View, choice: Choice) -> None:
    """What each head adds to the residual stream: z @ W_O."""
    found, H = choice.operands, len(choice.heads)
    C, added = found.x.shape[1], found.contributions(choice.query)
    before, after = np.linalg.norm(added.before), np.linalg.norm(added.after)
    change = "longer" if after > before else "shorter"
    caption(
        "z @ W_O",
        f"At {choice.token}, each head multiplies its z by its own rows of W_O. The sum of the "
        f"{H} products and b is added to the residual stream, whose length goes from "
        f"{before:.1f} to {after:.1f}: it gets {change}.",
        f" In GPT-2, W_O is <code>c_proj</code>, [{C}, {C}]. The rows of sums have two scales: "
        "one for the output, one for the stream.",
    )
    lengths = ", ".join(
        f"head {h} {n:.2f}" for h, n in zip(choice.heads, added.lengths, strict=True)
    )
    chart(
        recipe(view, _draw_contributions, **choice.given),
        key="operands_output",
        name="What each head adds to the residual stream",
        height=contributions_height(H),
        alt=f"Lengths of what heads add: {lengths}. The stream goes from {before:.2f} to "
        f"{after:.2f}.",
    )


def _draw_contributions(
    operands: Operands,
    heads: Sequence[int],
    index: int,
    query: int,
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    added = operands.contributions(query)
    figure = contributions_figure(
        added.z,
        operands.W_O,
        added.by_head,
        (added.output, added.before, added.after),
        theme,
        heads=heads,
        selected=index,
        sizes=sizes,
    )
    rows = np.concatenate(
        [added.by_head, np.stack([added.bias, added.output, added.before, added.after])]
    )
    names = [*(f"head {h}" for h in heads), "b", "output", "stream before", "stream after"]
    arrays = {"z": added.z, "rows": rows, "names": names}
    data = matrix_data(
        rows, ("row", names), ("channel", ()), value="value", arrays=arrays, labels="name"
    )
    return figure, data


DRAWINGS: dict[str, Callable[[View, Choice], None]] = {
    "q k v": _projection,
    "scores": _scores,
    "z": _weighted_values,
    "output": _contributions,
    "+ x": _contributions,
}
