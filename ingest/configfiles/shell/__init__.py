"""Launch scripts as bash reads them: commands, words, variables; nothing is executed."""
