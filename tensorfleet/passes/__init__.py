"""From a graph and its fetches to parts that run: prune, fold, order, place, fuse."""
