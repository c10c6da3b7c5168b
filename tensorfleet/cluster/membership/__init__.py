"""Who is in a cluster: specs, resolvers, start and shutdown of tasks."""
