"""The data `hier` and `rand` of Knödtel and Reichenbach, and their figures 6(a) and 6(b) as SVG.

6(a): the time of one thread over the length, as box plots. 6(b): the speedup over the threads, for traces
of floating-point instructions: 50,000 of them, as the paper takes from programs of Embench, and the 10⁶ of
its introduction. The paper's machine has 192 cores.

    python figures.py DIRECTORY [longest]
"""

from __future__ import annotations

import os
import pathlib
import random
import sys
import time
from typing import Dict, List, Sequence, Tuple

import loopfold
import numpy as np
import stencil

Series = Dict[str, List[Tuple[float, List[float]]]]


def rand(rng: random.Random, length: int) -> bytes:
    """Purely random bytes."""
    return rng.randbytes(length)


def hier(rng: random.Random, length: int, depth: int = 4) -> bytes:
    """Layers of repetition: again and again either a flat sequence, or a shorter sequence of the same
    kind that is repeated."""
    out = bytearray()
    while len(out) < length:
        if depth == 0 or rng.random() < 0.5:
            out += rng.randbytes(rng.randrange(1, 9))
        else:
            body = hier(rng, rng.randrange(2, max(3, min(length // 4, 64))), depth - 1)
            out += body * rng.randrange(2, 17)
    return bytes(out[:length])


def seconds(events: bytes, threads: int = 1) -> float:
    array = np.frombuffer(events, np.uint8)
    started = time.perf_counter()
    loopfold.fold(array, folder="outermost", threads=threads)
    return time.perf_counter() - started


def figure_6a(longest: int, repeats: int = 7) -> Series:
    rng = random.Random(6)
    lengths = [length for length in (1_000, 10_000, 100_000, 1_000_000, 10_000_000) if length <= longest]
    kinds = {"hier": hier, "rand": rand}
    return {
        name: [(length, [seconds(make(rng, length)) for _ in range(repeats)]) for length in lengths]
        for name, make in kinds.items()
    }


def figure_6b(longest: int, repeats: int = 15) -> Series:
    rng = random.Random(7)
    whole = bytes(ord(kind) for kind in stencil.trace(min(longest, 1_000_000)))
    kinds = {
        "stencil": whole,
        "first 50,000": whole[:50_000],
        "hier": hier(rng, longest),
        "rand": rand(rng, longest),
    }
    threads = sorted({1, 2, *(2**n for n in range(2, 9) if 2**n <= (os.cpu_count() or 1))})
    series: Series = {}
    for name, events in kinds.items():
        # In turns, as the speed of a machine changes while it is measured.
        times: Dict[int, List[float]] = {count: [] for count in threads}
        for _ in range(repeats):
            for count in threads:
                times[count].append(seconds(events, count))
        alone = float(np.median(times[1]))
        series[name] = [(count, [alone / time for time in times[count]]) for count in threads]
    return series


COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"]
WIDTH, HEIGHT, MARGIN = 640, 400, 60


def plot(series: Series, title: str, x: str, y: str, logarithmic: bool) -> str:
    """Box plots: whiskers from the least to the greatest, the box from quartile to quartile."""
    scale = np.log10 if logarithmic else (lambda value: value)
    xs = sorted({scale(place) for points in series.values() for place, _ in points})
    values = [scale(value) for points in series.values() for _, box in points for value in box]
    # Powers of ten, or quarters of the greatest.
    low, high = (np.floor(min(values)), np.ceil(max(values))) if logarithmic else (0.0, max(values) * 1.1)
    ticks = np.arange(low, high + 1) if logarithmic else np.linspace(low, high, 5)
    left, right = min(xs), max(xs)

    def at_x(value: float) -> float:
        return MARGIN + 30 + (value - left) / ((right - left) or 1) * (WIDTH - 2 * MARGIN - 60)

    def at_y(value: float) -> float:
        return HEIGHT - MARGIN - (value - low) / ((high - low) or 1) * (HEIGHT - 2 * MARGIN)

    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' font-family='sans-serif' font-size='12'>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
        f"<text x='{WIDTH / 2}' y='24' text-anchor='middle' font-size='15'>{title}</text>",
        f"<text x='{WIDTH / 2}' y='{HEIGHT - 14}' text-anchor='middle'>{x}</text>",
        f"<text transform='translate(16 {HEIGHT / 2}) rotate(-90)' text-anchor='middle'>{y}</text>",
    ]
    for place in xs:
        text = f"{10**place:,.0f}" if logarithmic else f"{place:g}"
        parts.append(f"<text x='{at_x(place):.1f}' y='{HEIGHT - MARGIN + 18}' text-anchor='middle'>{text}</text>")
    for value in ticks:
        text = f"{10**value:g}" if logarithmic else f"{value:.2f}"
        parts.append(f"<text x='{MARGIN}' y='{at_y(value) + 4:.1f}' text-anchor='end'>{text}</text>")
        parts.append(
            f"<line x1='{MARGIN + 4}' x2='{WIDTH - MARGIN}' y1='{at_y(value):.1f}' y2='{at_y(value):.1f}' stroke='#ddd'/>"
        )
    for number, (name, points) in enumerate(series.items()):
        parts += boxes(points, COLOURS[number % len(COLOURS)], 12 * number, scale, at_x, at_y)
        parts.append(
            f"<text x='{MARGIN + 12}' y='{44 + 15 * number}' fill='{COLOURS[number % len(COLOURS)]}'>{name}</text>"
        )
    return "\n".join([*parts, "</svg>\n"])


def boxes(points, colour, shift, scale, at_x, at_y) -> Sequence[str]:  # type: ignore[no-untyped-def]
    for place, box in points:
        x = at_x(scale(place)) + shift - 12
        least, first, middle, third, most = (at_y(scale(v)) for v in np.quantile(box, [0, 0.25, 0.5, 0.75, 1]))
        yield f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{least:.1f}' y2='{most:.1f}' stroke='{colour}'/>"
        yield (
            f"<rect x='{x - 5:.1f}' y='{third:.1f}' width='10' height='{max(first - third, 1):.1f}' "
            f"fill='white' stroke='{colour}'/>"
        )
        yield f"<line x1='{x - 5:.1f}' x2='{x + 5:.1f}' y1='{middle:.1f}' y2='{middle:.1f}' stroke='{colour}' stroke-width='2'/>"


def main(directory: str = ".", longest: int = 1_000_000) -> None:
    folder = pathlib.Path(directory)
    first, second = figure_6a(longest), figure_6b(longest)
    (folder / "figure-6a.svg").write_text(
        plot(first, "Time of one thread", "events", "seconds", logarithmic=True), encoding="utf-8"
    )
    (folder / "figure-6b.svg").write_text(
        plot(second, "Speedup over threads", "threads", "speedup", logarithmic=False), encoding="utf-8"
    )
    for name, points in first.items():
        for length, box in points:
            print(f"{name:<12}{length:>12,} events  median {np.median(box) * 1e3:10.3f} ms")
    for name, points in second.items():
        for count, box in points:
            print(f"{name:<12}{count:>12} threads  median speedup {np.median(box):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
