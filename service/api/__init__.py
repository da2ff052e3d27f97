"""The HTTP face of the service: routes, keys, limits."""
