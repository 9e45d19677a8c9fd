"""Pictures as values: pure functions from arrays and tokens to `plotly.graph_objects.Figure`."""
