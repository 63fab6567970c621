"""The folder of a run: what lies in it, the latest checkpoint, copies, and what may be removed."""
