"""Labels that Plotly would read as markup."""

MARKUP = ["<b>x</b>", "$x$", "&lt;"]
