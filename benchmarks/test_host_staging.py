"""GPU to host to GPU through a staging buffer on each NUMA node: what runs where P2P does not."""

from suite.plugin import Check


def test_staging(check: Check, route: tuple[int, ...], node: int, chunk: int) -> None:
    """Chunked, in two slots or more; one GPU stages back to itself."""
    check("staging", gpus=route, memory_node=node, chunk_bytes=chunk)
