"""Times of folding and unfolding a file of uint32, in seconds, as JSON: the fastest of some."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Callable

import loopfold
import numpy as np


def fastest(work: Callable[[], Any], attempts: int = 5) -> float:
    times = []
    for _ in range(attempts):
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
        del result
    return min(times)


array = np.fromfile(sys.argv[1], np.uint32)
answer = {
    "outermost": fastest(lambda: loopfold.fold(array, folder="outermost", threads=1), 3),
    "auto": fastest(lambda: loopfold.fold(array, threads=1), 3),
    "copy": fastest(array.copy),
}
fold = loopfold.fold(array, folder="outermost")
assert np.array_equal(fold.expand(), array)
answer["expand"] = fastest(fold.expand)
print(json.dumps(answer))
