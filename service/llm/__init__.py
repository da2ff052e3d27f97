"""Chat models: prompt, client, grounding, claim verification, conversation."""
