"""AutoGraph: Python whose branches and loops depend on tensors, as the operations that they stand for."""
