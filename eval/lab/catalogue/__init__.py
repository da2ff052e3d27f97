"""The tables of experiments, one module per family."""
