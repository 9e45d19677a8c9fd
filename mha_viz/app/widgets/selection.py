"""The head and the tokens that a lesson shows, with a message if it cannot show all of them."""

from mha_viz.app.messages import notice, problem
from mha_viz.app.view import View


def selected_index(view: View) -> int | None:
    """The index of the selected head among the kept heads of its layer.

    None if that head has been pruned; the page then says so.
    """
    kept = view.model.config.kept_heads(view.layer)
    if view.head in kept:
        return kept.index(view.head)
    problem(f"{view.at.label} has been pruned from this model. Choose another head.")
    return None


def n_first_tokens(view: View, most: int) -> int:
    """How many tokens from the start of the text to show; if not all, the page says so."""
    n = min(view.trace.n_tokens, most)
    if n < view.trace.n_tokens:
        notice(f"Showing the first {n} of {view.trace.n_tokens:,} tokens.")
    return n
