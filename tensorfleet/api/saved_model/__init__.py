"""SavedModels: graphs with signatures, variables and files, in the layout TensorFlow and its servers read."""
