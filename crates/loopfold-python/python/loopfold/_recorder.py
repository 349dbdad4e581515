"""Events from Python code."""

from __future__ import annotations

from typing import Optional, Union

from . import _native, _progress
from ._fold import _MEMORY, Fold


class Recorder:
    """Takes events while they happen and folds them, in O(distinct content) memory beside their times.

    >>> with loopfold.Recorder() as recorder:
    ...     for step in range(100):
    ...         recorder.push("load", start=20 * step, duration=5)
    ...         recorder.push("compute", start=20 * step + 5, duration=10)
    >>> recorder.fold.loops()["classes"][0]["nest"][0]["times"]
    100

    Streams have names, and threads may push at the same time. Times are nanoseconds.
    """

    def __init__(self, folder: str = "auto", threads: Optional[int] = None) -> None:
        self._recorder = _native.NativeRecorder(folder, threads)
        self._fold: Optional[Fold] = None
        self.push = self._recorder.push

    @property
    def events(self) -> int:
        """How many events there were so far."""
        return self._recorder.events

    def finish(self) -> Fold:
        """Ends recording."""
        if self._fold is None:
            self._fold = Fold(self._recorder.finish(_progress.report()), [_MEMORY], {})
        return self._fold

    @property
    def fold(self) -> Fold:
        """What was recorded, once recording has ended."""
        if self._fold is None:
            raise ValueError("the recorder still records; its fold is there when it has ended")
        return self._fold

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()


Event = Union[int, str, bytes]
