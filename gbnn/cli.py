"""The command `gbnn`: its arguments. What each does is in `gbnn.commands` and `gbnn.demo`."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

__all__ = ["main"]

Result = dict[str, Any]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _name(text: str) -> str:
    """Return the name of something; no name at all is a mistake, mostly of a shell variable."""
    if not text:
        raise argparse.ArgumentTypeError("expected a name, got ''")
    return text


def _parser() -> argparse.ArgumentParser:
    from gbnn import __version__

    parser = _Parser(prog="gbnn", description="Sparse neural networks as graph algebra.")
    parser.add_argument("--version", action="version", version=f"gbnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        made.add_argument("--threads", type=int, metavar="N", help="threads to use (default: all cores)")
        return made

    def data_options(made: argparse.ArgumentParser) -> None:
        made.add_argument(
            "--data",
            required=True,
            type=_name,
            metavar="NAME|FILE",
            help="a name of `gbnn datasets`, or a file",
        )
        made.add_argument("--folder", type=_name, help="where the files of a named data set are")
        made.add_argument("--target", help="target column of a text file, by name or number")

    def loss_option(made: argparse.ArgumentParser) -> None:
        made.add_argument("--loss", type=_name, metavar="NAME", help="default: what it was trained with")

    made = command("demo", "train, save, reload and use a small sparse network on digits")
    made.add_argument("--seed", type=int, default=0)

    made = command("train", "train a network and save it")
    data_options(made)
    made.add_argument(
        "--hidden", type=int, nargs="*", default=[1000], metavar="N", help="widths of hidden layers"
    )
    size = made.add_mutually_exclusive_group()
    size.add_argument(
        "--density",
        type=float,
        help="share of all possible edges in the hidden layers (default 0.05, and at most 8 million edges)",
    )
    size.add_argument("--nnz", type=int, nargs="+", metavar="N", help="edges in all, or one number a layer")
    made.add_argument(
        "--allocation",
        default="erdos_renyi",
        metavar="NAME",
        help="erdos_renyi (default), uniform, by_fan_in, by_layer_fan_in",
    )
    made.add_argument(
        "--activation",
        default="relu",
        help="relu (default), leaky_relu, gelu, silu, tanh, sigmoid, softplus, identity, kwinners:K (the K "
        "strongest neurons of each sample stay active, and cost follows them), threshold:T",
    )
    made.add_argument("--dropout", type=float, default=0.0, metavar="RATE", help="default 0")
    made.add_argument("--normalize", metavar="KIND", help="batch or layer")
    made.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        help="scale features, and numbers to predict, inside the model (default: for dense files)",
    )
    made.add_argument(
        "--rewire",
        default="none",
        metavar="METHOD",
        help="how edges move: none (default), static, set, dsr, deep-r, mest, itop, rigl, snfs, srigl, gse, "
        "gmp, granet, cht, chts, chtss, sparse-momentum, grow-on-demand",
    )
    made.add_argument("--rewire-fraction", type=float, metavar="F", help="share of edges moved")
    made.add_argument("--rewire-every", type=int, metavar="N", help="steps (mest: epochs) between moves")
    made.add_argument("--rewire-density", type=float, metavar="D", help="where gmp, granet and chtss end")
    made.add_argument(
        "--rewire-budget",
        type=int,
        metavar="N",
        help="edges that grow-on-demand may give the first layer, of sparse data",
    )
    made.add_argument("--epochs", type=int, default=10, metavar="N", help="passes over the data (default 10)")
    made.add_argument("--batch-size", type=int, default=128, metavar="N", help="rows a step (default 128)")
    made.add_argument(
        "--optimizer", default="adam", metavar="NAME", help="adam, adamw, sgd, rmsprop, adagrad"
    )
    made.add_argument(
        "--learning-rate", type=float, default=None, metavar="RATE", help="its peak (default: 0.003 for adam)"
    )
    made.add_argument(
        "--schedule", default="one_cycle", metavar="NAME", help="one_cycle, cosine (to 0) or constant"
    )
    made.add_argument("--weight-decay", type=float, default=0.0, metavar="RATE")
    made.add_argument("--loss", type=_name, metavar="NAME", help="default: what suits the data")
    made.add_argument("--validation", type=float, metavar="SHARE", help="share of training rows to watch")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--out", type=_name, metavar="FILE", help="where to save the model (.safetensors)")
    made.add_argument("--log", type=_name, metavar="FILE", help="write every epoch to a .csv or .jsonl file")
    made.add_argument("--quiet", action="store_true", help="no progress bar")

    made = command("evaluate", "measure a saved network on data")
    made.add_argument("model", type=_name, metavar="MODEL")
    data_options(made)
    loss_option(made)

    made = command("predict", "print what a saved network says of every row")
    made.add_argument("model", type=_name, metavar="MODEL")
    data_options(made)
    loss_option(made)
    made.add_argument(
        "--top", type=int, default=1, metavar="K", help="the K most probable classes or labels of a row"
    )
    made.add_argument("--out", type=_name, metavar="FILE", help="write to a file instead of the screen")

    command("datasets", "list the data sets known by name")

    made = command("info", "describe a saved network")
    made.add_argument("model", type=_name, metavar="MODEL")
    return parser


def _run(name: str) -> Callable[[argparse.Namespace], tuple[Result, str]]:
    # Imported late, so that `gbnn --help` answers at once.
    from gbnn import commands, demo

    table: dict[str, Callable[[argparse.Namespace], tuple[Result, str]]] = {
        "demo": demo.run,
        "train": commands.train,
        "evaluate": commands.evaluate,
        "predict": commands.predict,
        "datasets": commands.datasets,
        "info": commands.info,
    }
    return table[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        0; or 2 after an error, which is one line on standard error; 130 when interrupted.

    Examples
    --------
    >>> from gbnn.cli import main
    >>> main(["info", "no-such-file"])
    2
    """
    from gbnn import storage
    from gbnn.errors import GbnnError

    try:
        options = _parser().parse_args(arguments)
        if options.threads is not None:
            storage.set_threads(options.threads)
        result, text = _run(options.command)(options)
        _say(json.dumps(_plain(result), allow_nan=False) if options.json else text)
    except GbnnError as error:
        error.where = _as_option(error.where, options)
        return _failed(f"error: {error}", 2)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    except MemoryError:
        return _failed("error: memory: expected enough for this model and batch, got too little", 2)
    except OSError as error:
        # Standard output is full, or its reader (head, say) has seen enough: what is still buffered must not
        # raise again at exit.
        _give_up(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return 0
        where = error.filename or "standard output"
        return _failed(f"error: {where}: expected to be usable, got {error.strerror}", 2)
    return 0


# Arguments that are called otherwise on the command line.
_OPTIONS = {
    "widths": "hidden",
    "fraction": "rewire_fraction",
    "every": "rewire_every",
    "n": "rewire_every",
    "budget": "rewire_budget",
}


def _as_option(where: str, options: argparse.Namespace) -> str:
    """Name the option that an argument came from; what else an error names stays as it is."""
    name = re.sub(r"\[\d+\]$", "", where).split(", ")[0]
    name = _OPTIONS.get(name, name)
    given = vars(options).get(name) is not None and name not in ("command", "model")
    plain = where in (name, "nnz, density") or re.fullmatch(r"[a-z_]+(\[\d+\])?", where)
    return f"--{name.replace('_', '-')}" if given and plain else where


def _say(text: str) -> None:
    """Print to standard output; what it has no characters for is escaped. Nothing if it is closed."""
    if sys.stdout is not None:
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _failed(message: str, code: int) -> int:
    """Print one line to standard error, if it is open (print would take standard output instead)."""
    if sys.stderr is not None:
        try:
            print(f"gbnn: {' '.join(message.split())}", file=sys.stderr, flush=True)
        except OSError:
            _give_up(sys.stderr)
    return code


def _give_up(stream: Any) -> None:
    """Let what a stream of the process still holds go nowhere."""
    with contextlib.suppress(OSError, AttributeError):  # in a test it may be no file, or closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _plain(value: Any) -> Any:
    """Return a result with null for what is not finite: JSON has neither NaN nor infinity."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
