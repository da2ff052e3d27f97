"""From the statement that failed backwards to the options of the job's own program."""
