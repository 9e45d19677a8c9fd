"""What each page draws: one module or package per page, named as in `pages/`."""
