"""Long work: jobs, their progress, the models that all visitors share, downloads."""
