"""Reading and verifying published checkpoints."""
