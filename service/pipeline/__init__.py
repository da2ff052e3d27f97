"""One job from its output to its diagnosis; the one place where the parts meet."""
