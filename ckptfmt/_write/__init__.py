"""Writing and publishing records and checkpoints."""
