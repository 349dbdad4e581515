"""Progress: what a terminal and a notebook show, and that it is gone at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from typing import Any, List, Optional

import loopfold
import pytest
from loopfold import _progress

# Long enough to show progress, whatever the machine is.
LONG = """
import loopfold, numpy, sys, time
length = 2_000_000
while True:
    events = numpy.random.default_rng(1).integers(0, 1000, length)
    started = time.monotonic()
    loopfold.fold(events, folder="repair")
    if time.monotonic() - started > 1.5:
        break
    length *= 2
print("end", flush=True)
"""


def test_lines_fit() -> None:
    assert _progress._text(("reading", 50, 100), 2.0, 80) == "reading " + "█" * 15 + "░" * 15 + "  50%"
    assert _progress._text(("reading", 200, 100), 2.0, 80).endswith("█ 100%")
    assert _progress._text(("reading", 1_234_567, None), 2.0, 80) == "reading 1,234,567"
    assert _progress._text(("folding", 0, None), 61.4, 80) == "folding … 61 s"
    assert _progress._text(("", 0, None), 1.0, 80) == "working … 1 s"
    for columns in range(60):
        for state in [("reading", 50, 100), ("reading", 10**9, None), ("folding", 0, None)]:
            assert len(_progress._text(state, 1.0, columns)) <= columns


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of its own")
def test_a_terminal_shows_it_and_is_clean_at_the_end() -> None:
    import pty

    leader, follower = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=follower, text=True
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    output, _ = program.communicate()
    assert output == "end\n"
    lines = shown.decode().split("\r\x1b[2K")
    assert any(line.startswith("reading █") or line.startswith("folding … ") for line in lines), lines
    assert lines[0] == lines[-1] == ""
    assert all("\n" not in line for line in lines)


def test_nothing_is_shown_elsewhere() -> None:
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("end\n", "")


def test_a_notebook_shows_it_and_is_clean_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: List[str] = []

    class Handle:
        def update(self, content: str) -> None:
            shown.append(content)

    def display(content: str, display_id: Optional[bool] = None) -> Any:
        assert display_id
        shown.append(content)
        return Handle()

    class ZMQInteractiveShell:
        pass

    ipython, of_display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    setattr(ipython, "get_ipython", ZMQInteractiveShell)
    setattr(of_display, "HTML", str)
    setattr(of_display, "display", display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    report = _progress.report()
    assert report is not None
    report(("reading", 50, 100))
    report(("folding", 0, None))
    report(None)
    assert shown == ["<progress value='50' max='100'></progress> reading", "folding … 0 s", ""]
    # What is quick shows nothing.
    shown.clear()
    loopfold.fold([1, 2, 1, 2]).stats()
    assert shown == []
