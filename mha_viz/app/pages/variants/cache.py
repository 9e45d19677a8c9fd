"""The KV cache: what generation computes again without one, and what one takes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import streamlit as st

from mha_viz.analysis.generation import generate
from mha_viz.app.messages import escaped, notice, plain, problem
from mha_viz.app.view import View
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import number_input, segmented_control
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.stepper import steps
from mha_viz.app.widgets.tables import facts
from mha_viz.app.work.progress import Reporter, ResultSlots, may_start, wait_for
from mha_viz.figures.cache_sizes import Cached, cache_sizes_figure, in_bytes
from mha_viz.figures.cache_sizes import height as sizes_height
from mha_viz.figures.cache_steps import State, cache_figure
from mha_viz.figures.cache_steps import height as steps_height
from mha_viz.figures.lines import Line, line_chart
from mha_viz.gpt2 import GPT2
from mha_viz.lessons.counting import GPT2_SIZES, KNOWN_MODELS, ModelSize

MOST_NEW = 64
FIRST_NEW = 24
MOST_PROMPT = 256  # tokens of a text that are continued; without a cache each costs every step
WINDOW = 72  # positions that are drawn
AHEAD = 8  # of these, beyond the one that is made
MOST_RUNS = 7
WIDTHS = {"Kind": 110, "L": 45, "H": 45, "G": 45, "d_h": 45, "Context": 65}
ENOUGH = 3.0  # seconds of measuring after which no further run begins


@dataclass(frozen=True, slots=True)
class Generated:
    """A continuation, made both ways, and the median time of each of its tokens."""

    prompt: list[int]
    new: list[int]  # with the cache
    new_without: list[int]
    with_ms: list[float]
    without_ms: list[float]
    runs: int

    @property
    def ids(self) -> list[int]:
        """All tokens, those of the text first."""
        return [*self.prompt, *self.new]


_runs = ResultSlots[Generated](16)


def show(view: View) -> None:
    """The steps, the times, and what the cache takes in models of all sizes."""
    config = view.model.config
    if config.n_positions < 2 or not _n_kv_heads(view.model.network):
        notice("This model has nothing to keep: no heads are left, or it reads a single token.")
        return
    n_new = number_input("New tokens", 1, min(MOST_NEW, config.n_positions - 1), FIRST_NEW, "new")
    keep = min(MOST_PROMPT, config.n_positions - n_new)
    T = min(view.trace.n_tokens, keep)
    if view.trace.n_tokens > T:
        notice(f"The last {T:,} of {view.trace.n_tokens:,} tokens are continued.")
    work = view.about.n_parameters * n_new * (2 * T + n_new)
    if may_start(
        f"generate {view.trace_key} {n_new}", work, "Generate",
        f"{n_new} tokens after {T}, with the cache and without: {plain(model_name(view))} takes a "
        "while.",
    ):  # fmt: skip
        _both_ways(view, T, n_new)
    _models(view)


def _both_ways(view: View, T: int, n_new: int) -> None:
    made = _generated(view, T, n_new)
    if made is None:
        return
    tokens = [token.label for token in view.model.read(made.ids)]
    caption(
        "Step by step",
        "a column is a position; each step makes one token, outlined. A position is computed "
        "in it, read from the cache, or not there yet.",
    )
    steps("Token", "made", len(made.new), lambda at: _step(view, made, tokens, at))
    _equal(view, made)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _times(view, made)
    with right:
        _arithmetic(view, made)


def states(n_prompt: int, step: int, n: int) -> tuple[list[State], list[State]]:
    """What happens at each of `n` positions in a step, with the cache and without.

    Step 0 reads the text; each later one adds the token that the one before made.
    """
    made = n_prompt + step
    without: list[State] = ["computed" if i < made else "not yet" for i in range(n)]
    if step == 0:
        return without, without
    kept: list[State] = ["read" if i < made - 1 else w for i, w in enumerate(without)]
    return kept, without


def _step(view: View, made: Generated, tokens: Sequence[str], at: int) -> None:
    T, n = len(made.prompt), len(made.ids)
    position = T + at
    end = n if n <= WINDOW else min(n, max(WINDOW, position + AHEAD))
    first = max(0, end - WINDOW)
    kept, without = states(T, at, n)
    st.markdown(_sentence(f"**{plain(tokens[position])}**", position, at, first))
    chart(
        cache_figure(
            tokens[first:end], kept[first:end], without[first:end], view.theme, made=position,
            first=first, sizes=view.sizes,
        ),
        key="cache_step", height=steps_height(end - first),
        table=lambda: (
            ["position", "token", "with the cache", "without"],
            [
                [i, tokens[i] if i <= position else "", kept[i], without[i]]
                for i in range(first, end)
            ],
        ),
        alt=_sentence(tokens[position], position, at, first),
    )  # fmt: skip


def _sentence(token: str, position: int, at: int, first: int) -> str:
    name = f"Position {position} becomes {token}"
    left_out = f" Positions 0 to {first - 1} are left of the picture." if first else ""
    if at == 0:
        text = f"all {position} positions of the text" if position > 1 else "the text's position"
        return f"{name}: both ways compute {text}.{left_out}"
    return (
        f"{name}: with the cache 1 position is computed, read are {position - 1}; without, all "
        f"{position} are computed again.{left_out}"
    )


def _equal(view: View, made: Generated) -> None:
    if made.new != made.new_without:
        first = next(
            i for i, pair in enumerate(zip(made.new, made.new_without, strict=True))
            if pair[0] != pair[1]
        )  # fmt: skip
        problem(
            f"The two ways part at token {first + 1}: with the cache {made.new[first]}, without "
            f"{made.new_without[first]}. Two tokens must have been equally likely."
        )
        return
    text = view.model.tokenizer.decode(made.new, skip_special_tokens=False)
    if "\ufffd" in text:  # a part of a character: its label has the bytes
        text = "".join(token.label for token in view.model.read(made.new))
    st.html(
        f'<div class="caption">With the cache and without, all {len(made.new)} tokens are the '
        f"same: <b>{escaped(text)}</b></div>"
    )


def _times(view: View, made: Generated) -> None:
    T = len(made.prompt)
    at = [T + i for i in range(len(made.new))]
    runs = f"medians of {made.runs} runs" if made.runs > 1 else "one run"
    caption(
        "Time a token",
        f"measured just now on {view.model.device.type}, both ways in one go, {runs}; the first "
        f"token includes reading the {T} of the text.",
    )
    figure = line_chart(
        at,
        [
            Line("with the cache", made.with_ms, view.theme.accent),
            Line("without", made.without_ms, view.theme.muted),
        ],
        view.theme, x_title="position of the token", y_title="milliseconds", hover="%{y:.2f} ms",
        sizes=view.sizes,
    )  # fmt: skip
    chart(
        figure, key="token_times", height=290,
        alt=f"Milliseconds a token, the last one: {made.with_ms[-1]:.2f} with the cache, "
        f"{made.without_ms[-1]:.2f} without.",
    )  # fmt: skip
    download_table(
        "token_times.csv", ("position", "with the cache, ms", "without, ms"),
        list(zip(at, made.with_ms, made.without_ms, strict=True)),
    )  # fmt: skip


def _arithmetic(view: View, made: Generated) -> None:
    network = view.model.network
    b = network.wte.weight.element_size()
    heads, d_h = _n_kv_heads(network), network.config.d_head
    a_token = 2 * heads * d_h * b
    caption("What it holds", f"{escaped(model_name(view))}, as it runs here: {b} bytes a number.")
    st.latex(r"\text{softmax}\!\left(\tfrac{1}{\sqrt{d_h}}\,q_t\,[k_0 \dots k_t]^\top\right)"
             r"[v_0 \dots v_t]")  # fmt: skip
    st.markdown(
        "The newest query needs every key and value so far, and those of earlier tokens never "
        "change. A cache keeps them, so a step projects one token alone."
    )
    st.latex(r"\text{bytes} = 2 \cdot L \cdot G \cdot d_h \cdot T \cdot b")
    n = len(made.ids) - 1  # the last token is made, not read
    facts(
        {
            "a token": in_bytes(a_token),
            f"these {n} tokens": in_bytes(n * a_token),
            f"all {network.config.n_positions:,}": in_bytes(network.config.n_positions * a_token),
        }
    )
    st.caption("Vaswani et al. 2017, 3.2.1; Shazeer 2019, section 3 (why G counts).")


def _n_kv_heads(network: GPT2) -> int:
    """L times G, or what is left of it where heads were taken out."""
    return sum(block.attn.n_kv_heads for block in network.blocks)


def _models(view: View) -> None:
    """What the cache takes in models that people use."""
    of = segmented_control("Cache of", ["a token", "a context"], "a token", "cache_of")
    known = [*_here(view), *GPT2_SIZES, *KNOWN_MODELS]
    tokens = [1 if of == "a token" else size.n_positions for size in known]
    rows = [_cached(size, n) for size, n in zip(known, tokens, strict=True)]
    each = "one token" if of == "a token" else "the whole context that a model was trained for"
    caption(
        "The cache of known models",
        f"{each}, 2 bytes a number, as a model is and as it would be: MHA with keys and values "
        "for each query head, GQA with eight key/value heads or the next fewer that fit, MQA with "
        "one.",
    )
    chart(
        cache_sizes_figure(rows, view.theme, sizes=view.sizes), key="cache_sizes",
        height=sizes_height(len(rows)),
        alt="; ".join(f"{row.name} {in_bytes(row.own)}" for row in rows),
    )  # fmt: skip
    _table(known, rows, of)


def _table(known: Sequence[ModelSize], rows: Sequence[Cached], of: str) -> None:
    header = [
        "Model", "Kind", "L", "H", "G", "d_h", "Context", f"As it is, {of}", "MHA", "GQA", "MQA",
        "Source",
    ]  # fmt: skip
    numbers = [
        [m.name, m.kind, m.n_layers, m.n_heads, m.n_kv_heads, m.d_head, m.n_positions, row.own,
         *row.n_bytes, m.source]
        for m, row in zip(known, rows, strict=True)
    ]  # fmt: skip
    read = [
        [*line[:7], *(in_bytes(n) for n in (row.own, *row.n_bytes))]
        for line, row in zip(numbers, rows, strict=True)
    ]
    st.dataframe(
        {name: [line[i] for line in read] for i, name in enumerate(header[:-1])},
        column_config={
            name: st.column_config.Column(width=width) for name, width in WIDTHS.items()
        },
        hide_index=True, key="known_models", height=35 * (len(read) + 1) + 3,
        alt="The numbers of each model, its cache and where they stand.",
    )  # fmt: skip
    with st.expander("Where these numbers stand"):
        st.text("\n".join(f"{model.name}: {model.source}" for model in known))
    download_table("cache_sizes.csv", header, numbers)


def _here(view: View) -> list[ModelSize]:
    config = view.model.config
    if any(config.pruned_heads) or view.about.name in {size.name for size in GPT2_SIZES}:
        return []
    return [
        ModelSize(
            "this model", config.n_layers, config.d_model, config.n_heads,
            config.n_kv_heads or config.n_heads, config.d_head, config.n_positions,
            f"{model_name(view)}: its configuration, as loaded",
        )
    ]  # fmt: skip


def _cached(size: ModelSize, n_tokens: int) -> Cached:
    groups = max(n for n in range(1, 9) if size.n_heads % n == 0)
    n_bytes = [size.cache_bytes(n_tokens, n_kv_heads=G) for G in (size.n_heads, groups, 1)]
    return Cached(size.name, (n_bytes[0], n_bytes[1], n_bytes[2]), size.cache_bytes(n_tokens),
                  size.kind)  # fmt: skip


def _generated(view: View, n_prompt: int, n_new: int) -> Generated | None:
    network, prompt = view.model.network, view.trace.token_ids[-n_prompt:]

    def work(report: Reporter) -> Generated:
        next(generate(network, prompt, 1))  # what only a first call takes is not measured
        began, runs = time.perf_counter(), 0
        times: dict[bool, list[list[float]]] = {True: [], False: []}
        tokens: dict[bool, list[int]] = {}
        while runs < MOST_RUNS and (not runs or time.perf_counter() - began < ENOUGH):
            for number, cached in enumerate((True, False)):
                tokens[cached], took = [], []
                start = time.perf_counter()
                for token in generate(network, prompt, n_new, cached=cached):
                    now = time.perf_counter()
                    took.append(1e3 * (now - start))
                    tokens[cached].append(token)
                    report((number + len(took) / n_new) / 2)
                    start = time.perf_counter()
                times[cached].append(took)
            runs += 1
        with_ms, without_ms = (
            [median(t) for t in zip(*times[c], strict=True)] for c in (True, False)
        )
        return Generated(prompt, tokens[True], tokens[False], with_ms, without_ms, runs)

    slot = _runs(view.trace_key, n_prompt, n_new)
    what = "Generating, with the cache and without"
    return wait_for(slot, what, work, lane="generated")
