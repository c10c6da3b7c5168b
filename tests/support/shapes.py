"""Static shapes in a form that tests compare."""


def dims(tensor):
    """The dimensions as a list, None where the rank is unknown."""
    return None if tensor.shape.rank is None else tensor.shape.as_list()
