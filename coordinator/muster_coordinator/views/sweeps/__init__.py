"""What people get to read of a sweep: progress, result, explanations and exports. Pure functions over its record."""
