"""The graph: operations, tensors, scopes, shapes, gradients, and its protocol buffers."""
