"""Folds what PyTorch's profiler recorded."""

from __future__ import annotations

import os
import tempfile
from typing import Any, List, Optional

from ._fold import Fold, Option, PathLike, open


class TraceHandler:
    """A handler for `torch.profiler.profile(on_trace_ready=...)`: folds each profile that is ready.

    `folds` has them, the latest last; with a directory, their archives are kept there as `profile-0.fold`
    and so on. The options are those of `open()`, such as `category="kernel"`.

    >>> handler = loopfold.TraceHandler(category="kernel,gpu_memcpy")
    >>> # with torch.profiler.profile(on_trace_ready=handler) as profiler: ...
    """

    def __init__(self, directory: Optional[PathLike] = None, **options: Option) -> None:
        self._directory = directory
        self._options = options
        self.folds: List[Fold] = []

    def __call__(self, profiler: Any) -> None:
        kept = None
        directory = self._directory
        if directory is None:
            kept = tempfile.TemporaryDirectory(prefix="loopfold-")
            directory = kept.name
        else:
            os.makedirs(directory, exist_ok=True)
        archive = os.path.join(directory, f"profile-{len(self.folds)}.fold")
        with tempfile.TemporaryDirectory(prefix="loopfold-") as exported:
            path = os.path.join(exported, "profile.json")
            profiler.export_chrome_trace(path)
            with open(path, **self._options) as fold:
                fold.save(archive)
        fold = open(archive)
        # The directory goes away with the fold.
        fold._keeps = kept
        self.folds.append(fold)
