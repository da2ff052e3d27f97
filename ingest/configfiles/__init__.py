"""The one reader and editor of configuration files: what is read at a place can be changed at that place."""
