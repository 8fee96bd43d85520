"""Copies between host memory and GPUs, and between GPUs, by cupy: `copy` and `peer` hold the worker's handlers."""
