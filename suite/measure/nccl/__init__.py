"""NCCL itself, beside torch: its C library, its log, and where its own host buffers lie."""
