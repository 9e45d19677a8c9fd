"""The only part of the package that knows Streamlit: caches, inputs, the link, messages."""
