"""A small machine that executes a five-point stencil, and the trace of its floating-point instructions.

The machine has integer registers, floating-point registers, loads, stores, arithmetic and branches;
what is traced is the kind of each floating-point instruction, as in figure 1 of "Efficient Hierarchical
Decomposition of Repetitive Traces for ML-Driven Analysis" (l load, s store, a add, m multiply,
c conversion).

    python stencil.py [instructions]
"""

from __future__ import annotations

import sys
import time
from typing import Callable, Dict, List, Tuple

import loopfold
import numpy as np

SIZE = 32  # Points of the grid in each direction.
UNROLLED = 6  # Columns that an iteration of the inner loop computes.
KINDS = {"fld": "l", "fsd": "s", "fadd": "a", "fmul": "m", "fcvt": "c"}

Instruction = Tuple[str, ...]


def program() -> List[Instruction]:
    """The stencil as instructions: destination first, memory as a register and an offset."""
    code: List[Instruction] = []
    labels: Dict[str, int] = {}

    def label(name: str) -> None:
        labels[name] = len(code)

    points = SIZE * SIZE
    code.append(("li", "i", "0"))
    label("fill")
    code += [("fcvt", "f0", "i"), ("fsd", "f0", "i", "0"), ("addi", "i", "i", "1"), ("blt", "i", str(points), "fill")]
    code.append(("fld", "f9", "zero", "0"))
    label("sweep")
    code.append(("li", "row", str(SIZE)))
    label("row")
    code.append(("addi", "at", "row", "1"))
    code.append(("addi", "end", "row", str(SIZE - 1)))
    label("columns")
    lanes = range(UNROLLED)
    code += [("fld", f"f{lane}", "at", str(lane - SIZE)) for lane in lanes]
    for offset in (SIZE, -1, 1):
        code += [("fld", f"g{lane}", "at", str(lane + offset)) for lane in lanes]
        code += [("fadd", f"f{lane}", f"f{lane}", f"g{lane}") for lane in lanes]
    code += [("fmul", f"f{lane}", f"f{lane}", "quarter") for lane in lanes]
    code += [("fsd", f"f{lane}", "at", str(lane + points)) for lane in lanes]
    code += [("addi", "at", "at", str(UNROLLED)), ("bltr", "at", "end", "columns")]
    code += [("addi", "row", "row", str(SIZE)), ("blt", "row", str(points - SIZE), "row")]
    # The new grid becomes the old one.
    code.append(("li", "i", str(SIZE)))
    label("copy")
    code += [("fld", "f0", "i", str(points)), ("fsd", "f0", "i", "0"), ("addi", "i", "i", "1")]
    code += [("blt", "i", str(points - SIZE), "copy"), ("j", "sweep")]
    return [tuple(str(labels.get(part, part)) for part in instruction) for instruction in code]


def trace(instructions: int) -> List[str]:
    """The kinds of the first floating-point instructions."""
    memory = [0.0] * (2 * SIZE * SIZE + SIZE)
    integers: Dict[str, int] = {"zero": 0}
    floats: Dict[str, float] = {"quarter": 0.25}
    traced: List[str] = []

    def fld(to: str, base: str, offset: str) -> None:
        floats[to] = memory[integers[base] + int(offset)]

    def fsd(value: str, base: str, offset: str) -> None:
        memory[integers[base] + int(offset)] = floats[value]

    def fadd(to: str, a: str, b: str) -> None:
        floats[to] = floats[a] + floats[b]

    def fmul(to: str, a: str, b: str) -> None:
        floats[to] = floats[a] * floats[b]

    def fcvt(to: str, a: str) -> None:
        floats[to] = float(integers[a])

    execute: Dict[str, Callable[..., None]] = {
        "fld": fld, "fsd": fsd, "fadd": fadd, "fmul": fmul, "fcvt": fcvt,
    }  # fmt: skip
    code, counter = program(), 0
    while len(traced) < instructions:
        operation, *operands = code[counter]
        counter += 1
        if operation in execute:
            traced.append(KINDS[operation])
            execute[operation](*operands)
        elif operation == "li":
            integers[operands[0]] = int(operands[1])
        elif operation == "addi":
            integers[operands[0]] = integers[operands[1]] + int(operands[2])
        elif operation == "blt" and integers[operands[0]] < int(operands[1]):
            counter = int(operands[2])
        elif operation == "bltr" and integers[operands[0]] < integers[operands[1]]:
            counter = int(operands[2])
        elif operation == "j":
            counter = int(operands[0])
    return traced


def main(instructions: int = 1_000_000) -> Dict[str, float]:
    events = np.array(trace(instructions), dtype=object)
    codes = np.searchsorted(sorted(KINDS.values()), list(events)).astype(np.uint8)
    started = time.perf_counter()
    loopfold.fold(codes, folder="outermost")
    seconds = time.perf_counter() - started
    fold = loopfold.fold(events, folder="outermost", name="stencil")
    print(fold)
    written = fold.loops(exact=True)["classes"][0]["folded"]
    segments = fold.segments()
    print(f"\n{written:,} of {instructions:,} instructions are written: {written / instructions:.4%}; the paper: under 0.05 %")
    print(f"folded in {seconds * 1e3:.1f} ms on this machine; the paper: 13.6 s for 10^6 on 192 cores")
    print(f"\nthe training set: {segments}")
    print(segments.table())
    assert int(segments.weight.sum()) == instructions
    return {"written": written, "seconds": seconds, "segments": len(segments)}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
