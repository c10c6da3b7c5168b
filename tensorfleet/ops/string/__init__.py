"""Strings: splitting, joining, hashing, regular expressions, Unicode."""
