"""Long-running work: jobs, how pages show them, shared models and traces, and downloads."""
