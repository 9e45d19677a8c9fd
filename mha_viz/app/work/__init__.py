"""Long work: jobs and how pages show them, models and traces shared by all users, downloads."""
