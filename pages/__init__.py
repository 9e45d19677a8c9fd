"""One thin file a page: inputs, a cached computation, a figure, a caption."""
