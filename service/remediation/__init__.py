"""Which changes of a job's configuration may cure a cause, with their values and what rules them out."""
