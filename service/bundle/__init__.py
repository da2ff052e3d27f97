"""What is gathered about a dead or hanging job: one archive for `explain`, and the text of an issue."""
