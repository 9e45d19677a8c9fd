"""Messages show what a user typed exactly as typed."""

from mha_viz.app.messages import plain


def test_text_typed_by_a_user_is_never_markdown() -> None:
    assert plain("![i](p.png) :red[x] $x$") == r"\!\[i\]\(p\.png\) \:red\[x\] \$x\$"
    for address in ("https://e.invalid", "HTTP://e.invalid", "www.e.invalid", "a@e.invalid"):
        assert "\u2060" in plain(address)  # else Markdown makes a link of it
