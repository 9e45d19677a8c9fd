"""The title line of a page, and the lines over and beside a figure."""

from mha_viz.app.messages import escaped
from mha_viz.app.view import View
from mha_viz.app.widgets import explained
from mha_viz.app.work.models import TITLES


def title_line(view: View, title: str) -> None:
    """The title line: which model, which size, how many tokens, which head."""
    trace = view.trace
    n = trace.n_tokens
    about(
        title,
        f"{escaped(model_name(view))} · {trace.n_layers} layers × {trace.n_heads} heads · "
        f"{n:,} token{'s' * (n != 1)} · <b>{view.at.label}</b> selected",
    )


def about(title: str, text: str) -> None:
    """A title line with any text; `text` is HTML."""
    # Streamlit draws an <h1> in its own way.
    heading = f'<span role="heading" aria-level="1">{title}</span>'
    explained.html(f'<div class="lead">{heading}<span>{text}</span></div>')


def model_name(view: View) -> str:
    """What the model is called in a sentence."""
    return TITLES.get(view.about.name, view.about.name).split(" · ")[0]


def caption(title: str, text: str, more: str = "", *, also: str = "") -> None:
    """One line over a figure: its name, what it shows, and on a large screen `more`.

    All are HTML. `also` names words of the figure that are explained too.
    """
    name = f"<b>{title}</b> " if title else ""
    rest = f'<span class="more">{more}</span>' if more else ""
    explained.html(f'<div class="caption">{name}{text}{rest}</div>', also=also)


def metrics(*items: str) -> None:
    """Numbers with their names, side by side; each is HTML with the number in bold."""
    cells = "".join(f"<span>{item}</span>" for item in items)
    explained.html(f'<div class="score">{cells}</div>')
