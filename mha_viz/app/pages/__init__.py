"""What each page draws: one module or package a page, named as in `pages/`."""
