"""Control flow: conditionals, loops, functions, collectives, Python functions as ops."""
