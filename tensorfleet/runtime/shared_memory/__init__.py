"""Memory that tasks on one machine share: variables lent without a copy."""
