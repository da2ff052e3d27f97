"""The service's values: the diagnosis and its parts, events, stored records, errors."""
