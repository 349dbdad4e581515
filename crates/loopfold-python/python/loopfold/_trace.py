"""Traces Python code."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Iterable, List, Optional, Union

from . import _native, _progress
from ._fold import _MEMORY, Fold

_KINDS = ("functions", "lines", "c")
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


class trace:
    """Traces what Python code does inside of a `with` block, in all threads that start in it.

    The events are `"functions"` that are entered and left, `"lines"`, or calls into `"c"`; several are
    possible. Times are kept unless `times=False`.

    >>> def work():
    ...     return sum(range(3))
    >>> with loopfold.trace() as traced:
    ...     for _ in range(5):
    ...         _ = work()
    >>> traced.fold.loops()["classes"][0]["nest"][0]["times"]
    5

    Python 3.12 and later use `sys.monitoring`, others `sys.setprofile` and `sys.settrace`.
    """

    def __init__(
        self,
        events: Union[str, Iterable[str]] = "functions",
        *,
        times: bool = True,
        folder: str = "auto",
        threads: Optional[int] = None,
    ) -> None:
        chosen = (events,) if isinstance(events, str) else tuple(events)
        unknown = [kind for kind in chosen if kind not in _KINDS]
        if unknown or not chosen:
            what = f"{unknown[0]!r}" if unknown else "nothing"
            raise ValueError(f"cannot trace {what}; choose from {', '.join(_KINDS)}")
        self._chosen = chosen
        flags = ("functions" in chosen, "lines" in chosen, "c" in chosen, times)
        self._tracer = _native.NativeTracer(folder, threads, _OWN, flags)
        self._fold: Optional[Fold] = None
        self._before: Any = None
        self._tool: Optional[int] = None

    @property
    def events(self) -> int:
        """How many events there were so far."""
        return self._tracer.events

    @property
    def fold(self) -> Fold:
        """What was traced, once tracing has ended."""
        if self._fold is None:
            raise ValueError("tracing has not ended")
        return self._fold

    def __enter__(self) -> "trace":
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is not None:
            self._monitor(monitoring)
            return self
        self._before = (sys.gettrace(), sys.getprofile())
        if "lines" in self._chosen:
            threading.settrace(self._tracer)
            sys.settrace(self._tracer)
            frame: Any = sys._getframe(1)
            frame.f_trace = self._tracer
        if "functions" in self._chosen or "c" in self._chosen:
            threading.setprofile(self._tracer)
            sys.setprofile(self._tracer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._tool is not None:
            self._unmonitor(getattr(sys, "monitoring"))
        else:
            if "functions" in self._chosen or "c" in self._chosen:
                sys.setprofile(self._before[1])
                threading.setprofile(None)  # type: ignore[arg-type, unused-ignore]
            if "lines" in self._chosen:
                sys.settrace(self._before[0])
                threading.settrace(None)  # type: ignore[arg-type, unused-ignore]
        self._fold = Fold(self._tracer.finish(_progress.report()), [_MEMORY], {})

    def _monitor(self, monitoring: Any) -> None:
        tool = next((tool for tool in (4, 3, 2) if monitoring.get_tool(tool) is None), None)
        if tool is None:
            raise ValueError("other tools use sys.monitoring; end them first")
        monitoring.use_tool_id(tool, "loopfold")
        self._tool = tool
        chosen = 0
        for name, callback in self._callbacks():
            event = getattr(monitoring.events, name)
            monitoring.register_callback(tool, event, callback)
            chosen |= event
        monitoring.set_events(tool, chosen)

    def _callbacks(self) -> List[Any]:
        tracer = self._tracer
        callbacks: List[Any] = []
        if "functions" in self._chosen:
            callbacks += [(name, tracer.on_start) for name in ("PY_START", "PY_RESUME", "PY_THROW")[:2]]
            callbacks += [(name, tracer.on_return) for name in ("PY_RETURN", "PY_YIELD", "PY_UNWIND")]
        if "lines" in self._chosen:
            callbacks.append(("LINE", tracer.on_line))
        if "c" in self._chosen:
            callbacks.append(("CALL", tracer.on_call))
        return callbacks

    def _unmonitor(self, monitoring: Any) -> None:
        monitoring.set_events(self._tool, 0)
        for name, _ in self._callbacks():
            monitoring.register_callback(self._tool, getattr(monitoring.events, name), None)
        monitoring.free_tool_id(self._tool)
        self._tool = None
