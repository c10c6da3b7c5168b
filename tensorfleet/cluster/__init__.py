"""Servers and the sessions that reach them."""
