"""What is known of GPU job failures: causes, cases, settings, and the types that hold them."""
