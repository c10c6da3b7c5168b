"""The operations by topic: schema, shape, kernel, gradient and public function of each."""
