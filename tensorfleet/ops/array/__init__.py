"""Operations on shapes and elements: slicing, joining, gathering, padding, checking."""
