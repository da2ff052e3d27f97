"""What each release of a package requires, out of its tags or asked of pip."""
