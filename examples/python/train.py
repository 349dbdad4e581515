"""Trains a small model of power on a whole trace, and on weighted parts of it.

Power is simulated: each kind of instruction has a cost, and what the chip has done lately adds to it (a
moving average, which forgets slowly, so that it settles after some iterations of a loop). The model sees
the last eight instructions: a layer of random features, which the seed decides, and weights that least
squares finds. The error is that over the whole trace, whatever the model was trained on.

    python train.py [instructions]
"""

from __future__ import annotations

import sys
import time
from typing import Any, Dict, List, Tuple

import loopfold
import numpy as np
import stencil

LENGTH = 8  # Instructions that the model sees.
HIDDEN = 24
COSTS = {"l": 2.0, "s": 1.6, "a": 1.0, "m": 1.4, "c": 3.0}
# Of the moving average; and how much of it adds to the power.
FORGETS, ADDS = 0.9, 0.5


def power(kinds: List[str]) -> Any:
    """The power of every instruction."""
    recent, powers = 0.0, np.empty(len(kinds))
    for index, kind in enumerate(kinds):
        recent = FORGETS * recent + (1 - FORGETS) * COSTS[kind]
        powers[index] = COSTS[kind] + ADDS * recent
    return powers


def windows_of(symbols: Any) -> Any:
    padded = np.concatenate([np.full(LENGTH - 1, -1), symbols.astype(np.int64)])
    return np.lib.stride_tricks.sliding_window_view(padded, LENGTH)


class Model:
    """Random features and least squares."""

    def __init__(self, kinds: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        # One-hot codes times a random matrix are sums of its rows; the last row is padding.
        self.rows = rng.normal(size=(LENGTH, kinds + 1, HIDDEN))
        self.rows[:, -1] = 0.0
        self.weights = np.zeros(HIDDEN + 1)

    def features(self, windows: Any) -> Any:
        hidden = sum(self.rows[place][windows[:, place]] for place in range(LENGTH))
        return np.hstack([np.maximum(hidden, 0.0), np.ones((len(windows), 1))])

    def train(self, windows: Any, targets: Any, weights: Any) -> None:
        squares, products = np.eye(HIDDEN + 1) * 1e-6, np.zeros(HIDDEN + 1)
        for first in range(0, len(windows), 65_536):
            part = slice(first, first + 65_536)
            features = self.features(windows[part])
            weighted = features * weights[part, None]
            squares += weighted.T @ features
            products += weighted.T @ targets[part]
        self.weights = np.linalg.solve(squares, products)

    def predict(self, windows: Any) -> Any:
        parts = [slice(first, first + 65_536) for first in range(0, len(windows), 65_536)]
        return np.concatenate([self.features(windows[part]) @ self.weights for part in parts])


def trained(kinds: int, seed: int, rows: Tuple[Any, Any, Any], whole: Tuple[Any, Any]) -> Tuple[float, float]:
    """The error over the whole trace, and the seconds of training."""
    model = Model(kinds, seed)
    started = time.perf_counter()
    model.train(*rows)
    seconds = time.perf_counter() - started
    error = float(np.sqrt(np.mean((model.predict(whole[0]) - whole[1]) ** 2)))
    return error, seconds


def main(instructions: int = 1_000_000, seeds: int = 5) -> Dict[str, Dict[str, float]]:
    kinds = stencil.trace(instructions)
    powers = power(kinds)
    fold = loopfold.fold(kinds, folder="outermost")
    vocabulary = fold.segments().vocabulary
    symbols = np.array([vocabulary.index(kind) for kind in "lsamc" if kind in vocabulary])
    of_kind = dict(zip([kind for kind in "lsamc" if kind in vocabulary], symbols))
    whole = windows_of(np.array([of_kind[kind] for kind in kinds]))
    sets: Dict[str, Tuple[Any, Any, Any]] = {"everything": (whole, powers, np.ones(instructions))}
    for steady_state in (1, 2, 4, 8, 16):
        sample = fold.sample(steady_state)
        windows, weights = sample.windows(LENGTH)
        sets[f"steady_state={steady_state}"] = (windows, powers[sample.positions], weights)
    segments = fold.segments()
    # A segment alone: what came before its first occurrence, and its power there.
    places = np.concatenate([np.arange(it.start, it.start + it.length) for it in segments])
    times = np.repeat(segments.times.astype(float), segments.length.astype(np.int64))
    sets["segments"] = (whole[places], powers[places], times)
    results: Dict[str, Dict[str, float]] = {}
    print(f"{'trained on':<18}{'rows':>11}{'ms':>9}{'error':>10}  spread by the seed")
    for name, rows in sets.items():
        outcomes = [trained(len(vocabulary), seed, rows, (whole, powers)) for seed in range(seeds)]
        errors = np.array([error for error, _ in outcomes])
        seconds = min(seconds for _, seconds in outcomes)
        results[name] = {
            "rows": len(rows[0]),
            "seconds": seconds,
            "error": float(errors.mean()),
            "spread": float(errors.std()),
        }
        print(f"{name:<18}{len(rows[0]):>11,}{seconds * 1e3:>9.1f}{errors.mean():>10.4f}  ± {errors.std():.4f}")
    return results


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
