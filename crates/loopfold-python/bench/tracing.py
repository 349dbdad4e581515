"""The cost of tracing functions of Python programs: plain, under cProfile, viztracer and loopfold; in
seconds, and the bytes of what they write, as JSON."""

from __future__ import annotations

import cProfile
import json
import os
import pathlib
import sys
import tempfile
import time
from typing import Any, Callable, Dict

import loopfold


def fibonacci(n: int = 23) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def _point(grid: Any, row: int, column: int) -> float:
    return float(grid[row - 1][column] + grid[row + 1][column] + grid[row][column - 1] + grid[row][column + 1]) / 4


def stencil(size: int = 40, sweeps: int = 40) -> None:
    grid = [[float(row * column) for column in range(size)] for row in range(size)]
    for _ in range(sweeps):
        grid = [
            [_point(grid, r, c) if 0 < r < size - 1 and 0 < c < size - 1 else grid[r][c] for c in range(size)]
            for r in range(size)
        ]


class _Node:
    def __init__(self, depth: int) -> None:
        self.children = [_Node(depth - 1) for _ in range(3)] if depth else []

    def total(self) -> int:
        return 1 + sum(child.total() for child in self.children)


def tree() -> int:
    return _Node(9).total()


def plain(program: Callable[[], Any], _: pathlib.Path) -> None:
    program()


def profiled(program: Callable[[], Any], path: pathlib.Path) -> None:
    profile = cProfile.Profile()
    profile.runcall(program)
    profile.dump_stats(path)


def viztraced(program: Callable[[], Any], path: pathlib.Path) -> None:
    from viztracer import VizTracer

    tracer = VizTracer(output_file=f"{path}.json", verbose=0, tracer_entries=10_000_000, ignore_c_function=True)
    tracer.start()
    program()
    tracer.stop()
    tracer.save()
    os.replace(f"{path}.json", path)


def folded(times: bool) -> Callable[[Callable[[], Any], pathlib.Path], None]:
    def run(program: Callable[[], Any], path: pathlib.Path) -> None:
        with loopfold.trace(times=times) as traced:
            program()
        traced.fold.save(path)

    return run


WAYS: Dict[str, Callable[[Callable[[], Any], pathlib.Path], None]] = {
    "plain": plain,
    "cProfile": profiled,
    "viztracer": viztraced,
    "loopfold": folded(True),
    "without times": folded(False),
}

answers: Dict[str, Any] = {}
with tempfile.TemporaryDirectory() as directory:
    for program in (fibonacci, stencil, tree):
        answers[program.__name__] = {}
        for name, way in WAYS.items():
            path = pathlib.Path(directory) / "x"
            path.unlink(missing_ok=True)
            seconds = []
            for _ in range(3):
                started = time.perf_counter()
                way(program, path)
                seconds.append(time.perf_counter() - started)
            size = path.stat().st_size if path.exists() else 0
            answers[program.__name__][name] = {"seconds": min(seconds), "bytes": size}
json.dump(answers, sys.stdout)
