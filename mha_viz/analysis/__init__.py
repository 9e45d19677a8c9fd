"""Why and what for: numbers that take a model apart, each in a module of its own."""
