"""Strict readers of the svmlight and the extreme-classification format: every error names the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp

from gbnn.data.layout import NOTHING, Known, Layout, Reader, Survey
from gbnn.data.targets import Target
from gbnn.data.text_blocks import Block, blocks, joined, read_header
from gbnn.errors import FileError

__all__ = ["read_svmlight"]


def read_svmlight(
    path: str | Path,
    known: Known = NOTHING,
    *,
    targets: bool = True,
) -> tuple[Any, Target | None, Layout]:
    r"""Read ``label index:value ...`` lines, the format of SVMlight and LIBSVM.

    Or, if the first line is ``rows features labels``, those of the Extreme Classification Repository, whose
    rows ``label,label,... index:value ...`` count labels and indices from 0 [1]_.

    Parameters
    ----------
    path : str or Path
        Text, plain or compressed by gzip. ``#`` starts a comment; ``qid:`` is skipped; several labels of a
        row are joined by commas, and a row may have none if any has several.
    known : Known, optional
        Features, classes, and whether indices count from 0. By default there are as many features as the
        largest index says, and indices count from 0 if there is a 0 in the file, else from 1.
    targets : bool
        False: the labels may be anything.

    Returns
    -------
    x : csr_array of float32, shape (rows, features)
    target : Target, or None without `targets`
    layout : Layout

    Raises
    ------
    FileError
        On anything else: words, negative or repeated indices, numbers that are not finite, no rows, an index
        beyond the features, a 0 though indices count from 1, a label that is not known, more or fewer rows
        than the header says.

    Notes
    -----
    Where a file mixes indices from 0 and from 1, nothing shows it: with a 0 in it, it counts from 0.

    References
    ----------
    .. [1] K. Bhatia et al., "The extreme classification repository: Multi-label datasets and code", 2016.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data.svmlight import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.svm")
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1 # a comment\n")
    ...     x, target, layout = read_svmlight(path)
    >>> x.toarray().tolist(), target.y, target.classes
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], array([1, 0]), ('-1', '1'))
    >>> layout.zero_based
    False
    """
    where = str(path)
    header = read_header(path)
    survey = Survey(where, header, known, targets=targets)
    parts = list[Block]()
    for part in blocks(path, header=header is not None):
        survey.add(part)
        parts.append(part)
    layout = survey.layout()
    if not parts:
        raise FileError(where, f"{layout.rows} rows below its header", "none")
    block = joined(parts)
    del parts
    reader = Reader(where, layout, header=header is not None, targets=targets)
    x, y = reader.read(block)
    reader.end()
    matrix = sp.csr_array((x.values, x.columns, x.starts), shape=x.shape)
    return matrix, Target(y, layout.classes, layout.loss) if targets else None, layout
