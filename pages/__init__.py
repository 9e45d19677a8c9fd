"""One thin file per page; mha_viz/app/pages holds what a page draws."""
