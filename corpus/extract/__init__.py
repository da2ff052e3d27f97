"""Read the settings of a framework out of its source, without importing or running it."""
