"""Memory between NumPy and GraphBLAS: loans without copies, thread counts, the kernel report.

This is the only room that hands a pointer from one to the other. Two kinds of hand-over exist.

* **Lent** (inputs). NumPy keeps the memory and GraphBLAS reads it: `lend_full`, `lend_columns`. The matrix
  that comes back holds its loan, and the loan holds the arrays, so the memory lives as long as anyone can
  reach the matrix, whatever exception passes by. When the last reference goes, GraphBLAS gives the pointers
  back before it frees its own header.
* **Given** (outputs). GraphBLAS owns the memory and may replace it: `Output`. NumPy gets it, as an array of
  its own, from `Output.take`. Nobody can reach an array of it before.

A lent matrix is read-only: writing into it would have GraphBLAS free NumPy's memory. So it comes as a
`graphblas` TransposedMatrix, which has nothing that writes, of a matrix by row, which is the same memory and
refuses. What remains is to go round that on purpose (`lent.T.ss`, `gb_obj`): the loan finds out when it ends
(GbnnError, no double free), but until then the arrays dangle.

Several threads may read one lent matrix at once, but for products of a *sparse* operand with a matrix from
`lend_columns` call its `wait()` once before. There GraphBLAS makes an index of the columns; without, the
first such product does, and two threads that do it at once crash. (Products with a full operand need no
index, and it takes time and memory: so it is not made always.)
"""

from __future__ import annotations

from gbnn.engine import KernelReport, kernel_report, set_threads, threads
from gbnn.storage.lend import lend_columns, lend_full, swap_values
from gbnn.storage.output import Output

__all__ = [
    "KernelReport",
    "Output",
    "kernel_report",
    "lend_columns",
    "lend_full",
    "set_threads",
    "swap_values",
    "threads",
]
