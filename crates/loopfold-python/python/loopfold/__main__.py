"""`python -m loopfold run script.py`: traces a script and shows its loops, or writes an archive."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import types
from typing import List, Optional

from . import __version__
from ._trace import _KINDS, trace


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m loopfold", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    run = parser.add_subparsers(dest="command", required=True).add_parser("run", help="trace a script")
    run.add_argument("-o", "--output", help="write an archive instead of showing the loops")
    run.add_argument("--events", default="functions", help=f"what to trace: {', '.join(_KINDS)}")
    run.add_argument("--no-times", action="store_true", help="leave out the times")
    run.add_argument("-m", "--module", action="store_true", help="the script is a module")
    run.add_argument("script")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    parsed = parser.parse_args(arguments)
    try:
        tracing = trace(parsed.events.split(","), times=not parsed.no_times)
    except ValueError as error:
        parser.error(str(error))
    status = _execute(parsed, tracing)
    if parsed.output:
        answer = tracing.fold.save(parsed.output)
        print(f"{parsed.output}: {answer['events']:,} events in {answer['bytes']:,} bytes", file=sys.stderr)
    else:
        print(tracing.fold.text("loops"), end="")
    return status


def _execute(parsed: argparse.Namespace, tracing: trace) -> int:
    sys.argv = [parsed.script, *parsed.arguments]
    try:
        if parsed.module:
            with tracing:
                runpy.run_module(parsed.script, run_name="__main__", alter_sys=True)
        else:
            _execute_file(parsed.script, tracing)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _execute_file(path: str, tracing: trace) -> None:
    """As `runpy` does, of which nothing is traced then."""
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    with tracing:
        exec(code, main.__dict__)


if __name__ == "__main__":
    sys.exit(main())
