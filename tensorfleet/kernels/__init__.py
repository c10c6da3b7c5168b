"""Numerical routines behind the ops: convolutions, random numbers, hashing, parsing."""
