"""One module for each version, in order; none is changed once it was released."""
