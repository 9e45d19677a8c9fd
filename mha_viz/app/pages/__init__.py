"""What each page is made of: one module or package a page, named as in `pages/`."""
