"""Progress in a terminal or a notebook, once half a second has passed; it is gone at the end."""

from __future__ import annotations

import html
import shutil
import sys
import time
from typing import Any, Callable, Optional, Tuple

State = Tuple[str, int, Optional[int]]
Report = Callable[[Optional[State]], object]

# The characters of a bar.
_WIDTH = 30


def _text(state: State, seconds: float, columns: int) -> str:
    """A line of at most so many characters: a bar, or how much is done, or for how long it has taken."""
    phase, done, total = state
    phase = phase or "working"
    if total:
        share = min(done / total, 1.0)
        width = min(_WIDTH, columns - len(phase) - 6)
        filled = round(share * width)
        bar = f" {'█' * filled}{'░' * (width - filled)}" if width > 4 else ""
        text = f"{phase}{bar} {share:4.0%}"
    else:
        text = f"{phase} {done:,}" if done else f"{phase} … {seconds:.0f} s"
    return text[: max(columns, 0)]


class _InTerminal:
    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, state: Optional[State]) -> None:
        # A character in the last column would begin another line in some terminals.
        columns = shutil.get_terminal_size().columns - 1
        text = _text(state, time.monotonic() - self._started, columns) if state else ""
        sys.stderr.write("\r\x1b[2K" + text)
        sys.stderr.flush()


class _InNotebook:
    def __init__(self) -> None:
        self._handle: Any = None
        self._started = time.monotonic()

    def __call__(self, state: Optional[State]) -> None:
        from IPython.display import HTML, display

        content = ""
        if state is not None:
            phase, done, total = state
            bar = f"<progress value='{min(done, total)}' max='{total}'></progress> " if total else ""
            label = phase if total else _text(state, time.monotonic() - self._started, 80)
            content = bar + html.escape(label)
        if self._handle is None:
            self._handle = display(HTML(content), display_id=True)
        else:
            self._handle.update(HTML(content))


def report() -> Optional[Report]:
    """What draws progress here, if anything does."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _InNotebook()
    if sys.stderr is not None and sys.stderr.isatty():
        return _InTerminal()
    return None
