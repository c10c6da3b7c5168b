"""From a graph and what is asked of it to programs that run: prune, fold, order, place, fuse."""
