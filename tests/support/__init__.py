"""What several tests share: a page as a script, a served app and a browser, small models."""
