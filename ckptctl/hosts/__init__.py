"""The control plane behind a web framework: one small file for each."""
