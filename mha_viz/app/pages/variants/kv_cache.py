"""The KV cache part: generation with and without a key/value cache, step by step and timed."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import streamlit as st

from mha_viz.analysis.generation import generate
from mha_viz.app.messages import escaped, notice, plain, problem
from mha_viz.app.pages.variants import cache_contents, cache_sizes
from mha_viz.app.pages.variants.cache_contents import with_groups
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.widgets.caption import caption, model_name
from mha_viz.app.widgets.chart import chart
from mha_viz.app.widgets.choices import number_input
from mha_viz.app.widgets.download_buttons import download_table
from mha_viz.app.widgets.recipes import recipe
from mha_viz.app.widgets.stepper import steps
from mha_viz.app.work.progress import Reporter, ResultSlots, may_start, wait_for
from mha_viz.export import Drawn, Given, rows_data
from mha_viz.figures.cache_steps import State, cache_figure, height
from mha_viz.figures.lines import Line, line_chart
from mha_viz.figures.theme import TextSizes, Theme
from mha_viz.model import Model

MAX_NEW, DEFAULT_NEW = 64, 24
MAX_PROMPT = 256  # tokens; without a cache, every step computes all of them again
MAX_DRAWN = 72  # positions
DRAWN_AFTER = 8  # positions after the current one, among those drawn
MAX_RUNS = 7
ENOUGH_SECONDS = 3.0  # of measuring, after which no further run starts
MEASURED = "Its times were measured on the server, and differ from run to run."
CACHED, UNCACHED = "with the cache", "without the cache"


@dataclass(frozen=True, slots=True)
class Generation:
    """Tokens generated with and without the cache, and the median time of each token."""

    prompt: list[int]
    new: list[int]  # with the cache
    new_uncached: list[int]
    cached_ms: list[float]
    uncached_ms: list[float]
    n_runs: int

    @property
    def ids(self) -> list[int]:
        """The prompt and the tokens generated with the cache."""
        return [*self.prompt, *self.new]


_generations = ResultSlots[Generation](16)


def show(view: View) -> None:
    """The steps, the times, and the size of the cache in models of all sizes."""
    config = view.model.config
    if config.n_positions < 2 or not cache_sizes.n_kv_heads(view.model.network):
        notice("This model has no use for a cache: it has no heads or reads only one token.")
        return
    most = min(MAX_NEW, config.n_positions - 1)
    n_new = number_input("New tokens", 1, most, DEFAULT_NEW, "new")
    G = cache_contents.choose_groups(view)
    T = min(view.trace.n_tokens, MAX_PROMPT, config.n_positions - n_new)
    if view.trace.n_tokens > T:
        notice(f"Continuing only the last {T:,} of {view.trace.n_tokens:,} tokens.")
    multiply_adds = view.about.n_parameters * n_new * (2 * T + n_new)
    explanation = (
        f"Generating {n_new} tokens after {T}, with and without the cache, takes a while with "
        f"{plain(model_name(view))}."
    )
    own = config.n_kv_heads or config.n_heads
    if own != G:
        explained.paragraph(
            f"The model was converted from G = {own} to G = {G} by averaging, without training, "
            "so it writes worse than the original."
        )
    key = f"generate {view.trace_key} {n_new} {G}"
    if may_start(key, multiply_adds, "Generate", explanation):
        _generation(view, T, n_new, G)
    cache_sizes.known_models(view)


def _generation(view: View, T: int, n_new: int, G: int) -> None:
    generation = _generate(view, T, n_new, G)
    if generation is None:
        return
    tokens = [token.label for token in view.model.read(generation.ids)]
    steps(
        "Token", "made", len(generation.new), lambda step: _step(view, generation, tokens, step, G)
    )
    _same_tokens(view, generation)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _times(view, generation)
    with right:
        network = with_groups(view.model, G).network
        cache_sizes.of_this_model(view, network, n_tokens=len(generation.ids) - 1)


def states(n_prompt: int, step: int, n: int) -> tuple[list[State], list[State]]:
    """What happens at each of `n` positions in a step, with the cache and without.

    Step 0 reads the prompt; each later step adds the token that the previous step generated.
    """
    n_tokens = n_prompt + step
    uncached: list[State] = ["computed" if i < n_tokens else "not yet" for i in range(n)]
    if step == 0:
        return uncached, uncached
    cached: list[State] = ["read" if i < n_tokens - 1 else s for i, s in enumerate(uncached)]
    return cached, uncached


def _step(view: View, generation: Generation, tokens: Sequence[str], step: int, G: int) -> None:
    n_prompt, n = len(generation.prompt), len(generation.ids)
    position = n_prompt + step
    drawn_positions = _drawn(n, position)
    first = drawn_positions.start
    explained.paragraph(_step_sentence(f"**{plain(tokens[position])}**", position, step, first))
    given: dict[str, Any] = {
        "n_new": n - n_prompt,
        "prompt": Given(generation.prompt, "trace.token_ids[-n_prompt:]"),
        "ids": Given(
            generation.ids, "[*prompt, *generate(model.network, prompt, n_new)]", __name__
        ),
    }
    cache_contents.show(view, G, n_prompt, generation.ids, given, step)
    caption(
        "With and without the cache",
        "Each column is a position; the step generates the outlined token. Colour: the position "
        "is computed in this step, read from the cache, or not there yet.",
    )
    model = cache_contents.model_given(view, G)
    chart(
        recipe(view, _draw_step, n_prompt=n_prompt, model=model, step=step, **given),
        key="cache_step",
        name="Cache, step by step",
        height=height(len(drawn_positions)),
        alt=_step_sentence(tokens[position], position, step, first),
    )


def _drawn(n: int, position: int) -> range:
    """The positions that are drawn: all `n`, or those up to a few after the current one."""
    end = n if n <= MAX_DRAWN else min(n, max(MAX_DRAWN, position + DRAWN_AFTER))
    return range(max(0, end - MAX_DRAWN), end)


def _draw_step(
    model: Model, ids: list[int], n_prompt: int, step: int, theme: Theme, sizes: TextSizes
) -> Drawn:
    tokens = [token.label for token in model.read(ids)]
    position = n_prompt + step
    shown = _drawn(len(ids), position)
    part = slice(shown.start, shown.stop)
    cached, uncached = states(n_prompt, step, len(ids))
    figure = cache_figure(
        tokens[part],
        cached[part],
        uncached[part],
        theme,
        generated=position,
        first=shown.start,
        sizes=sizes,
    )
    rows = [[i, tokens[i] if i <= position else "", cached[i], uncached[i]] for i in shown]
    data = rows_data(["position", "token", CACHED, UNCACHED], rows)
    return figure, data


def _step_sentence(token: str, position: int, step: int, first: int) -> str:
    if step == 0:
        positions = f"all {position} positions" if position > 1 else "the only position"
        work = f"with and without the cache, {positions} of the text must be computed."
    else:
        work = (
            f"with the cache, 1 position is computed and {position - 1} are read; without it, all "
            f"{position} are recomputed."
        )
    not_drawn = f" Positions 0 to {first - 1} are not drawn." if first else ""
    return f"Position {position} becomes {token}: {work}{not_drawn}"


def _same_tokens(view: View, generation: Generation) -> None:
    """Says that the cache does not change the tokens, or where it does."""
    new, new_uncached = generation.new, generation.new_uncached
    if new != new_uncached:
        pairs = zip(new, new_uncached, strict=True)
        first = next(i for i, (cached, uncached) in enumerate(pairs) if cached != uncached)
        cached, uncached = (t.label for t in view.model.read([new[first], new_uncached[first]]))
        problem(
            f"With and without the cache, token {first + 1} differs: {cached} with it, {uncached} "
            "without it. Their logits were probably so close that rounding decided."
        )
        return
    text = view.model.tokenizer.decode(new, skip_special_tokens=False)
    if "\ufffd" in text:  # part of a character; the label of its token shows the bytes
        text = "".join(token.label for token in view.model.read(new))
    explained.html(
        f'<div class="caption">With and without the cache, all {len(new)} tokens are the same: '
        f"<b>{escaped(text)}</b></div>"
    )


def _times(view: View, generation: Generation) -> None:
    cached_ms, uncached_ms = generation.cached_ms, generation.uncached_ms
    n_prompt, n_runs = len(generation.prompt), generation.n_runs
    runs = f"medians of {n_runs} runs each" if n_runs > 1 else "one run each"
    caption(
        "Time per token",
        f"Measured on {view.model.device.type} alternately with and without the cache, {runs}. The "
        f"time of the first token includes reading the {n_prompt} tokens of the text.",
    )
    positions = list(range(n_prompt, n_prompt + len(generation.new)))
    last = f"{cached_ms[-1]:.2f} ms with the cache, {uncached_ms[-1]:.2f} ms without"
    times = {"positions": positions, "cached_ms": cached_ms, "uncached_ms": uncached_ms}
    drawn = recipe(view, _draw_times, **times, cannot=MEASURED)
    alt = f"Time for the last token: {last}."
    chart(drawn, key="token_times", name="Time per token", height=290, alt=alt)
    header = ["position", f"{CACHED} (ms)", f"{UNCACHED} (ms)"]
    rows = list(zip(positions, cached_ms, uncached_ms, strict=True))
    download_table("token_times.csv", header, rows)


def _draw_times(
    positions: list[int],
    cached_ms: list[float],
    uncached_ms: list[float],
    theme: Theme,
    sizes: TextSizes,
) -> Drawn:
    lines = [Line(CACHED, cached_ms, theme.accent), Line(UNCACHED, uncached_ms, theme.muted)]
    figure = line_chart(
        positions,
        lines,
        theme,
        x_title="position of the token",
        y_title="milliseconds",
        value_format="%{y:.2f} ms",
        sizes=sizes,
    )
    rows = list(zip(positions, cached_ms, uncached_ms, strict=True))
    data = rows_data(["position", f"{CACHED} (ms)", f"{UNCACHED} (ms)"], rows)
    return figure, data


def _generate(view: View, n_prompt: int, n_new: int, G: int) -> Generation | None:
    network = with_groups(view.model, G).network
    prompt = view.trace.token_ids[-n_prompt:]

    def work(report: Reporter) -> Generation:
        next(generate(network, prompt, 1))  # a warm-up, because the first call is slower
        start, n_runs = time.perf_counter(), 0
        cached_runs: list[list[float]] = []
        uncached_runs: list[list[float]] = []
        while n_runs < MAX_RUNS and (not n_runs or time.perf_counter() - start < ENOUGH_SECONDS):
            tokens = generate(network, prompt, n_new, cached=True)
            new, ms = _timed(tokens, n_new, lambda share: report(share / 2))
            cached_runs.append(ms)
            tokens = generate(network, prompt, n_new, cached=False)
            new_uncached, ms = _timed(tokens, n_new, lambda share: report((1 + share) / 2))
            uncached_runs.append(ms)
            n_runs += 1
        cached_ms, uncached_ms = _medians(cached_runs), _medians(uncached_runs)
        return Generation(prompt, new, new_uncached, cached_ms, uncached_ms, n_runs)

    slot = _generations(view.trace_key, n_prompt, n_new, G)
    return wait_for(slot, "Generating with and without the cache", work, lane="generated")


def _timed(
    tokens: Iterator[int], n: int, on_progress: Callable[[float], None]
) -> tuple[list[int], list[float]]:
    """The `n` tokens, and the milliseconds that each one took."""
    ids: list[int] = []
    milliseconds: list[float] = []
    start = time.perf_counter()
    for token in tokens:
        milliseconds.append(1e3 * (time.perf_counter() - start))
        ids.append(token)
        on_progress(len(ids) / n)
        start = time.perf_counter()
    return ids, milliseconds


def _medians(runs: Sequence[Sequence[float]]) -> list[float]:
    """The median over runs of each token's time."""
    return [median(times) for times in zip(*runs, strict=True)]
