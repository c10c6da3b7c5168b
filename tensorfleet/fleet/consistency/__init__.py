"""How far workers may drift apart, as one value: the parser, a class for each scheme, and what puts them into a graph."""
