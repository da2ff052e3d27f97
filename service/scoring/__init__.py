"""From a crash report to probabilities of causes: retrieval, features, calibration, telemetry evidence."""
