"""What several pages draw: captions, charts, tables, the token strip, the head board."""
