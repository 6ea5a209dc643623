"""The command `gbnn`: its arguments. What each does is in `gbnn.commands` and `gbnn.demo`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

__all__ = ["main"]

Result = dict[str, Any]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


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
            "--data", required=True, metavar="NAME|FILE", help="a name of `gbnn datasets`, or a file"
        )
        made.add_argument("--folder", help="where the files of a named data set are")
        made.add_argument("--target", help="target column of a text file, by name or number")

    made = command("demo", "train, save, reload and use a small sparse network on digits")
    made.add_argument("--seed", type=int, default=0)

    made = command("train", "train a network and save it")
    data_options(made)
    made.add_argument(
        "--hidden", type=int, nargs="*", default=[1000], metavar="N", help="widths of hidden layers"
    )
    size = made.add_mutually_exclusive_group()
    size.add_argument(
        "--density", type=float, help="share of all possible edges in the hidden layers (default 0.05)"
    )
    size.add_argument("--nnz", type=int, nargs="+", metavar="N", help="edges in all, or one number a layer")
    made.add_argument("--allocation", default="erdos_renyi", help="erdos_renyi or uniform")
    made.add_argument("--activation", default="relu", help="relu, gelu, tanh, ...")
    made.add_argument("--dropout", type=float, default=0.0, metavar="RATE")
    made.add_argument("--normalize", metavar="KIND", help="batch or layer")
    made.add_argument("--rewire", default="none", metavar="METHOD", help="none, set or rigl")
    made.add_argument("--rewire-fraction", type=float, default=0.3, metavar="F", help="share of edges moved")
    made.add_argument("--rewire-every", type=int, default=100, metavar="N", help="steps between moves (rigl)")
    made.add_argument("--epochs", type=int, default=10)
    made.add_argument("--batch-size", type=int, default=128, metavar="N")
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
    made.add_argument("--loss", metavar="NAME", help="default: what suits the data")
    made.add_argument("--validation", type=float, metavar="SHARE", help="share of training rows to watch")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--out", metavar="FILE", help="where to save the model (.safetensors)")
    made.add_argument("--log", metavar="FILE", help="write every epoch to a .csv or .jsonl file")
    made.add_argument("--quiet", action="store_true", help="no progress bar")

    made = command("evaluate", "measure a saved network on data")
    made.add_argument("model", metavar="MODEL")
    data_options(made)

    made = command("predict", "print what a saved network says of every row")
    made.add_argument("model", metavar="MODEL")
    data_options(made)
    made.add_argument("--top", type=int, default=1, metavar="K", help="the K most probable classes of a row")
    made.add_argument("--out", metavar="FILE", help="write to a file instead of the screen")

    command("datasets", "list the data sets known by name")

    made = command("info", "describe a saved network")
    made.add_argument("model", metavar="MODEL")
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

    options = _parser().parse_args(arguments)
    try:
        if options.threads is not None:
            storage.set_threads(options.threads)
        result, text = _run(options.command)(options)
        print(json.dumps(result) if options.json else text, flush=True)
    except GbnnError as error:
        print(f"gbnn: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gbnn: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, say) has seen enough: what is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print(
            "gbnn: error: memory: expected enough for this model and batch, got too little", file=sys.stderr
        )
        return 2
    return 0
