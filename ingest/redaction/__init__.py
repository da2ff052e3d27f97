"""What secrets look like, in which forms they come, and how they are found and masked."""
