"""The answer in words: headline, explanation, evidence and the other parts of a diagnosis."""
