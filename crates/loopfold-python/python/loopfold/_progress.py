"""Progress in a terminal or a notebook, once half a second has passed."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Tuple

State = Tuple[str, int, Optional[int]]
Report = Callable[[Optional[State]], object]


def _text(state: State, width: int = 30) -> str:
    phase, done, total = state
    if not total:
        return f"{phase} {done:,}" if done else f"{phase} …"
    share = min(done / total, 1.0)
    filled = round(share * width)
    return f"{phase} {'█' * filled}{'░' * (width - filled)} {share:4.0%}"


def _in_terminal(state: Optional[State]) -> None:
    sys.stderr.write("\r\x1b[2K" + (_text(state) if state else ""))
    sys.stderr.flush()


class _InNotebook:
    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, state: Optional[State]) -> None:
        from IPython.display import HTML, display

        phase, done, total = state or ("", 0, None)
        bar = f"<progress value='{done}' max='{total}'></progress> " if total else ""
        content = HTML(f"{bar}{phase}" if state else "")
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)


def report() -> Optional[Report]:
    """What draws progress here, if anything does."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _InNotebook()
    if sys.stderr is not None and sys.stderr.isatty():
        return _in_terminal
    return None
