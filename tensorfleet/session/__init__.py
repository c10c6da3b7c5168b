"""Sessions: what is fed, what is fetched, and the run in between."""
