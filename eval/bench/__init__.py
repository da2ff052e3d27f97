"""Speed and memory, as ratios against a peer of the same run."""
