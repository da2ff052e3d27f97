"""Hours of mixed load while parts are killed: nothing is lost, nothing is done twice, nothing grows."""
