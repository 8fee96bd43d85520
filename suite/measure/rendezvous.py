"""Where the ranks of a process group meet: a file on one host, a TCP store between several."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import torch.distributed as dist

from suite.measure.answer import Rank

_NEVER = timedelta(days=1)  # the parent's deadline ends a hang


def store(rank: Rank) -> Any:
    """The process group's store. Raises torch's DistStoreError where nobody listens."""
    if not rank.between_hosts:
        return dist.FileStore(rank.store, rank.world_size)
    place = urlsplit(rank.store)
    client = dist.TCPStore(str(place.hostname), place.port or 0, None, is_master=False, timeout=_NEVER)
    return dist.PrefixStore(place.path.strip("/"), client)
