"""`History`: what training measured, one row an epoch; as rows, a table or a plot."""

from __future__ import annotations

from typing import Any

from gbnn.errors import ArgumentError, FileError, MissingError
from gbnn.topology import explored
from gbnn.training.container import as_path
from gbnn.training.state import Step

__all__ = ["History", "table"]


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows of equal meaning as aligned text: floats with four significant digits."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names] + [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in cells)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class History:
    """What training measured, epoch by epoch.

    Attributes
    ----------
    rows : list of dict
        One an epoch: epoch, loss, accuracy (or r2), val_loss, ..., seconds, edges_per_second, grown.
    rewirings : list of dict
        One a layer and rewiring: step, epoch, layer, and then in edges: nnz, dropped, grown, regrown (see
        `topology.Rewired`); the last ones of each epoch also explored (`topology.explored`), places.

    Examples
    --------
    >>> from gbnn.training import History
    >>> history = History([{"epoch": 0, "loss": 1.5}, {"epoch": 1, "loss": 0.75}])
    >>> history["loss"]
    [1.5, 0.75]
    >>> print(history.table())
    epoch  loss
        0   1.5
        1  0.75
    """

    def __init__(self, rows: list[dict[str, Any]] | None = None) -> None:
        self.rows: list[dict[str, Any]] = [] if rows is None else rows
        self.rewirings: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> list[Any]:
        """Return one column, an entry an epoch."""
        if not any(name in row for row in self.rows):
            names = sorted({key for row in self.rows for key in row})
            raise ArgumentError("history", f"one of {names}", name)
        return [row.get(name) for row in self.rows]

    def table(self) -> str:
        """Return the rows as aligned text."""
        return table(self.rows)

    def __repr__(self) -> str:
        return f"History({len(self.rows)} epochs)\n{self.table()}"

    def note(self, step: Step) -> None:
        """Add what a step's rewiring did to each layer."""
        self.rewirings += [{"step": step.index, "epoch": step.epoch, **one.row()} for one in step.changes]
        if step.last_in_epoch:
            of_epoch = {row["layer"]: row for row in self.rewirings if row["epoch"] == step.epoch}
            for name, row in of_epoch.items():
                rows, columns = step.model.parameters()[name].shape
                row |= {"explored": explored(step.state.memory[name]), "places": rows * columns}

    def plot(self, path: Any = None) -> Any:
        """Draw loss and metric over the epochs with matplotlib (``pip install 'graphblas-nn[plot]'``).

        Parameters
        ----------
        path : str or Path, optional
            Where to save the picture; its ending chooses the format.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingError
            If matplotlib is not installed.
        KindError
            If `path` is none.
        FileError
            If the picture cannot be written, or its ending names no format.
        """
        shown = [n for n in ("loss", "accuracy", "r2") if any(n in row for row in self.rows)]
        figure, axes = _figure(len(shown))
        for axis, name in zip(axes, shown, strict=True):
            for column, label in ((name, "training"), (f"val_{name}", "validation")):
                points = [
                    (row.get("epoch", k), row[column]) for k, row in enumerate(self.rows) if column in row
                ]
                if points:
                    axis.plot(*zip(*points, strict=True), marker="o", label=label)
            axis.set(xlabel="epoch", ylabel=name)
            axis.legend()
        return _saved(figure, path)

    def plot_edges(self, path: Any = None) -> Any:
        """Draw how the edges moved, layer by layer over the steps, with matplotlib.

        Three charts: the edges of each layer (their drift between layers); the share of them that each
        rewiring dropped, and of that what was grown again at once, dotted; the share of all places that has
        been explored (ITOP's rate).

        Parameters, result and errors are those of `plot`.
        """
        figure, axes = _figure(3)
        titles = ("edges", "dropped, of all edges", "explored, of all places")
        for layer in dict.fromkeys(row["layer"] for row in self.rewirings):
            rows = [row for row in self.rewirings if row["layer"] == layer]
            steps = [row["step"] for row in rows]
            removed = [row["dropped"] + row["regrown"] for row in rows]
            before = [max(1, row["nnz"] - row["grown"] + row["dropped"]) for row in rows]
            (line,) = axes[0].plot(steps, [row["nnz"] for row in rows], marker=".", label=layer)
            shares = [r / b for r, b in zip(removed, before, strict=True)]
            axes[1].plot(steps, shares, marker=".", color=line.get_color())
            regrown = [row["regrown"] / b for row, b in zip(rows, before, strict=True)]
            axes[1].plot(steps, regrown, linestyle=":", color=line.get_color())
            known = [(row["step"], row["explored"] / row["places"]) for row in rows if "explored" in row]
            axes[2].plot(*zip(*known, strict=True), marker=".", color=line.get_color())
        for axis, title in zip(axes, titles, strict=True):
            axis.set(xlabel="step", ylabel=title, ylim=(0, None))
        if self.rewirings:
            axes[0].legend()
        return _saved(figure, path)


def _figure(count: int) -> tuple[Any, Any]:
    """Return a figure of `count` charts beside each other."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        wanted = "matplotlib: pip install 'graphblas-nn[plot]'"
        raise MissingError("plot", wanted, "no such package") from None
    figure = Figure(figsize=(5 * max(count, 1), 3.5), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False)[0] if count else []


def _saved(figure: Any, path: Any) -> Any:
    """Save the figure, if there is a path, and return it."""
    if path is not None:
        path = as_path(path)
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(str(path), "a picture that can be written", reason) from None
    return figure
