"""How fast is host memory, from every NUMA node to every node? It caps what staging through the host can reach."""

from suite.plugin import Check


def test_copy(check: Check, node: int, target_node: int, cpu_node: int | None) -> None:
    """Threads on one node's CPUs copy from one node's memory to another's."""
    check("host_memory_copy", memory_node=node, target_node=target_node, cpu_node=cpu_node)
