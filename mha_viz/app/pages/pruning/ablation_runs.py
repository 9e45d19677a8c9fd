"""Runs on the text and on the reference text, with all heads and with some of them ablated."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from mha_viz import pruning
from mha_viz.app.pages.pruning.ablation_type import Ablation
from mha_viz.app.view import View
from mha_viz.app.widgets.reference_text import Reference
from mha_viz.app.work.progress import Reporter, ResultSlot, ResultSlots, wait_for
from mha_viz.callbacks import OnProgress
from mha_viz.pruning import Estimate, Pass, Scores
from mha_viz.trace import Array

CHUNK = 256  # tokens
N_PASSAGES = 4  # of the reference text that run after every click; curves use more of it


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Passes over the text and over chunks of the reference text, and the loss of each token."""

    passes: tuple[Pass, ...]
    losses: tuple[Array, ...]

    @property
    def text(self) -> Pass:
        """The pass over the text."""
        return self.passes[0]

    @property
    def text_losses(self) -> Array:
        """`[T - 1]`: the loss of each token of the text but the first, in nats."""
        return self.losses[0]

    @property
    def text_loss(self) -> float:
        """The mean loss on the text, in nats."""
        return float(self.losses[0].mean(dtype=np.float64))

    @property
    def reference_loss(self) -> float:
        """The mean loss on the reference text, in nats."""
        return float(np.concatenate(self.losses[1:]).mean(dtype=np.float64))

    @property
    def reference_size(self) -> str:
        """How much of the reference text was read."""
        n = len(self.losses) - 1
        n_tokens = sum(map(len, self.losses[1:]))
        return f"{n} passage{'s' * (n != 1)}, {n_tokens:,} tokens"


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """The runs of the full model and with ablated heads, and how far they differ on the text."""

    full: Runs
    ablated: Runs
    divergence: Array  # [T], KL in nats
    pattern_change: Scores  # [L, H]
    draws: tuple[float, ...] = ()  # the loss on the text for several resampled values, in nats

    @property
    def text_change(self) -> Estimate:
        """The change of the loss on the text, with its interval over stretches of the text."""
        change = (self.ablated.text_losses - self.full.text_losses).astype(np.float64)
        means, weights = pruning.stretches(change)
        return pruning.estimate(means, weights=weights)

    @property
    def reference_change(self) -> Estimate:
        """The change of the loss on the reference text, with its interval over passages."""
        pairs = zip(self.full.losses[1:], self.ablated.losses[1:], strict=True)
        changes = [(after - before).astype(np.float64) for before, after in pairs]
        means = [np.asarray(change.mean()) for change in changes]
        return pruning.estimate(means, weights=[len(change) for change in changes])


_full_runs = ResultSlots[Runs](8)


def ablation_effect(view: View, ablation: Ablation) -> Effect | None:
    """The effect of the ablation, or None if there is none; the page then says why."""
    full = _run_full_model(view, ablation.reference)
    if full is None:
        return None
    if not ablation.heads:
        return _no_effect(view, full)
    return _ablate(view, ablation, full)


def _run_full_model(view: View, reference: Reference) -> Runs | None:
    model, token_ids = view.model, view.trace.token_ids

    def work(report: Reporter) -> Runs:
        length = min(model.config.n_positions, CHUNK)
        passages = pruning.numbered_chunks(model, reference.evaluation, length)
        # The first chunk of each passage: chunks of one passage depend on each other.
        first = {number: ids for number, ids in reversed(passages)}
        chunks = [first[number] for number in sorted(first)[:N_PASSAGES]]
        passes: list[Pass] = []
        for text in (token_ids, *chunks):
            report(len(passes) / (2 + len(chunks)))
            passes.append(Pass.of(model, text))
        return Runs(tuple(passes), tuple(one.losses() for one in passes))

    slot = _full_runs(view.trace_key, reference.key)
    return wait_for(slot, "Running the full model", work, lane="full model")


def _ablate(view: View, ablation: Ablation, full: Runs) -> Effect | None:
    """Runs with ablated heads, from the runs before the last click if those had the same texts.

    Only the layers from the lowest changed one up are run; the result equals that of a full run
    bit for bit. Replacement values are made for the length of each text.
    """
    replacements = [ablation.replacement(view, one.ids.shape[1]) for one in full.passes]
    ready = [replacement for replacement in replacements if replacement is not None]
    if len(ready) < len(replacements):
        return None
    state = st.session_state
    texts = (view.trace_key, ablation.reference.key, id(view.model.network))
    before: Runs = state["ablated_runs"] if state.get("ablated_runs_of") == texts else full
    gate = ablation.gate(view)

    def work(report: Reporter) -> Effect:
        n_steps = len(ready) + 3
        passes: list[Pass] = []
        for one, replacement in zip(before.passes, ready, strict=True):
            report(len(passes) / n_steps)
            passes.append(one.gated(gate, replacement))
        report(len(ready) / n_steps)
        ablated = Runs(tuple(passes), tuple(one.losses() for one in passes))
        report((len(ready) + 1) / n_steps)
        divergence = pruning.divergence(full.text, ablated.text)
        report((len(ready) + 2) / n_steps)
        changes = pruning.pattern_change(full.text, ablated.text, view.trace.text_queries)
        drawn = _draws(
            view, ablation, full.text, lambda done: report((len(ready) + 2 + done) / n_steps)
        )
        return Effect(full, ablated, divergence, changes, drawn)

    key = (*texts, ablation.heads, ablation.method)
    if state.get("ablation_effect_of") != key:
        state["ablation_effect_of"], state["ablation_effect"] = key, ResultSlot()
    slot: ResultSlot[Effect] = state["ablation_effect"]
    effect = wait_for(slot, "Running with ablated heads", work, lane="ablated model")
    if effect is not None:
        state["ablated_runs_of"], state["ablated_runs"] = texts, effect.ablated
    return effect


def _draws(view: View, ablation: Ablation, text: Pass, report: OnProgress) -> tuple[float, ...]:
    """The loss on the text for each of several resampled values; none for other types."""
    if ablation.method != "resample":
        return ()
    length, texts = text.ids.shape[1], ablation.reference.selection
    values = pruning.draws(
        view.model, ablation.method, length, texts, on_progress=lambda done: report(done / 2)
    )
    losses: list[float] = []
    for value in values:
        losses.append(text.without(ablation.heads, value).loss)
        report((1 + len(losses) / len(values)) / 2)
    return tuple(losses)


def _no_effect(view: View, full: Runs) -> Effect:
    config = view.model.config
    unchanged = np.full((config.n_layers, config.n_heads), np.nan)
    for head in pruning.all_heads(config):
        unchanged[head] = 0.0
    return Effect(full, full, np.zeros(view.trace.n_tokens, np.float32), unchanged)
