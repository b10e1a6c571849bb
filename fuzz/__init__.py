"""Coverage-guided fuzzing of everything that reads untrusted files or requests: make fuzz."""
