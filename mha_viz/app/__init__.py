"""The web app: apart from cli.py, the only part of the package that imports Streamlit."""
