"""Sessions: feeds, fetches, and the run in between."""
