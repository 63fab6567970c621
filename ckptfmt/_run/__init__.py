"""The folder of a run: listing it, finding the latest checkpoint, copying and pruning checkpoints."""
