"""The retrieval chain: from a CrashReport to a Diagnosis."""
