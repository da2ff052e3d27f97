"""What the program tells a collector of OpenTelemetry's of its own work."""
