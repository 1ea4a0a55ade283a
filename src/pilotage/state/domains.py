"""Topology domains as small integers, and sums over them.

Law: domain 0 means "the node lacks the key"; it never holds a count. Domain numbers are label codes plus
one, so they stay what they are while nodes come and go.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pilotage.state.view import Bool, Int32, Int64, NodeView

Domains: TypeAlias = NDArray[np.intp]


def domains_of(view: NodeView, key: str) -> Domains:
    """[n_rows] domain of each row for a topology key; 0 where the row has no node or lacks the key."""
    domains = view.label_column(key).astype(np.intp)
    domains += 1
    domains *= view.alive
    return domains


def domain_sums(domains: Domains, counts: Int32 | Int64, where: Bool | None = None) -> Int64:
    """[largest domain + 1] sum of `counts` by domain over the rows in `where` (None: all rows).

    Exact while sums stay below 2**53.
    """
    if where is not None:
        counts = counts * where
    sums = np.bincount(domains, weights=counts, minlength=1).astype(np.int64)
    sums[0] = 0
    return sums


def domains_present(domains: Domains, where: Bool, size: int) -> Bool:
    """[size] whether a domain has a row in `where`."""
    present = np.zeros(size, np.bool_)
    present[domains[where]] = True
    present[0] = False
    return present
