"""What every folder builds on: dtypes, shapes, errors, settings, files, protocol buffers."""
