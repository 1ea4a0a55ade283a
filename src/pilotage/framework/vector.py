"""Small words for vector filters: everything passes, or the marked rows fail for one reason."""

from __future__ import annotations

import numpy as np

from pilotage.framework.plugin import FilterResult
from pilotage.framework.status import Code
from pilotage.state.view import Bool, Int8, Rows, UInt64


def all_pass(rows: Rows) -> FilterResult:
    return FilterResult(np.zeros(rows.size, np.int8), np.zeros(rows.size, np.uint64))


def reject(is_out: Bool, code: Code, bit: int = 1) -> FilterResult:
    """`is_out` is aligned with the rows that were asked."""
    codes: Int8 = is_out.astype(np.int8) * np.int8(code)
    reasons: UInt64 = is_out.astype(np.uint64) * np.uint64(bit)
    return FilterResult(codes, reasons)
