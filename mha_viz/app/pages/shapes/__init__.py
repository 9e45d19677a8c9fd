"""The Shapes page: the walk through a layer, its memory, and what breaks it."""
