"""Recorders, tracing of Python code, and profiles of PyTorch."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any, Dict, List

import loopfold
import pytest


def leaf() -> int:
    return len("abc")


def branch() -> int:
    return leaf() + leaf()


def test_functions() -> None:
    with loopfold.trace() as traced:
        for _ in range(50):
            branch()
    nest = traced.fold.loops(exact=True)["classes"][0]["nest"]
    assert nest[0]["times"] == 50
    labels = traced.fold.expand()
    assert labels[:6] == [
        "enter branch",
        "enter leaf caller=branch",
        "leave leaf",
        "enter leaf caller=branch",
        "leave leaf",
        "leave branch",
    ]
    assert len(labels) == 300
    assert traced.fold.find("branch: leaf leaf")["count"] == 50
    assert sys.getprofile() is None


def test_times() -> None:
    with loopfold.trace() as traced:
        branch()
    starts = traced.fold.window(times=True)["streams"][0]["start_ns"]
    assert starts == sorted(starts)
    with loopfold.trace(times=False) as traced:
        branch()
    assert "start_ns" not in traced.fold.window(times=True)["streams"][0]


def test_lines() -> None:
    with loopfold.trace("lines") as traced:
        for _ in range(30):
            leaf()
    lines = traced.fold.expand()
    assert all(line.startswith("test_tracing.py:") for line in lines)
    first = leaf.__code__.co_firstlineno + 1
    assert lines.count(f"test_tracing.py:{first}") == 30
    assert sys.gettrace() is None


def test_calls_into_c() -> None:
    with loopfold.trace("c") as traced:
        for _ in range(20):
            leaf()
    assert traced.fold.find("len")["count"] == 20
    assert not any("setprofile" in label for label in traced.fold.expand())


def test_an_exception_ends_tracing() -> None:
    with pytest.raises(KeyError):
        with loopfold.trace() as traced:
            branch()
            raise KeyError
    assert traced.fold.stats()["events"] == 6
    with pytest.raises(ValueError, match="tracing has not ended"):
        loopfold.trace().fold
    with pytest.raises(ValueError, match="cannot trace 'words'; choose from functions, lines, c"):
        loopfold.trace("words")


def test_threads() -> None:
    with loopfold.trace() as traced:
        branch()
        threads = [threading.Thread(target=branch) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    names = [stream["stream"] for stream in traced.fold.streams()["stream_list"]]
    assert names == ["main", "thread 1", "thread 2", "thread 3"]
    assert traced.fold.find("branch: leaf leaf")["count"] == 4


class Monitoring:
    """Stands in for `sys.monitoring`, which Python has from 3.12 on."""

    events = SimpleNamespace(
        PY_START=1, PY_RESUME=2, PY_RETURN=4, PY_YIELD=8, PY_UNWIND=16, LINE=32, CALL=64
    )

    def __init__(self) -> None:
        self.tools: Dict[int, str] = {}
        self.callbacks: Dict[int, Any] = {}
        self.chosen = 0

    def get_tool(self, tool: int) -> Any:
        return self.tools.get(tool)

    def use_tool_id(self, tool: int, name: str) -> None:
        self.tools[tool] = name

    def free_tool_id(self, tool: int) -> None:
        del self.tools[tool]

    def register_callback(self, tool: int, event: int, callback: Any) -> None:
        self.callbacks[event] = callback

    def set_events(self, tool: int, events: int) -> None:
        self.chosen = events


def test_monitoring(monkeypatch: pytest.MonkeyPatch) -> None:
    monitoring = Monitoring()
    if not hasattr(sys, "monitoring"):
        monkeypatch.setattr(sys, "monitoring", monitoring, raising=False)
        with loopfold.trace(["functions", "lines", "c"]) as traced:
            assert monitoring.chosen == 127
            code = leaf.__code__
            for _ in range(10):
                monitoring.callbacks[1](code, 0)
                monitoring.callbacks[32](code, 14)
                monitoring.callbacks[64](code, 2, len, "abc")
                monitoring.callbacks[64](code, 2, branch, None)
                monitoring.callbacks[4](code, 8, 3)
        assert monitoring.chosen == 0
        assert not monitoring.tools
        assert set(monitoring.callbacks.values()) == {None}
        assert traced.fold.expand()[:4] == ["enter leaf", "test_tracing.py:14", "len", "leave leaf"]
        assert traced.fold.stats()["events"] == 40


SCRIPT = """
import sys
def step(n):
    return n + 1
for n in range(25):
    step(n)
print(sys.argv[1:], __name__)
sys.exit(3)
"""


def test_a_script(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = [sys.executable, "-m", "loopfold", "run"]
    shown = subprocess.run([*run, str(script), "-x", "y"], capture_output=True, text=True)
    assert shown.returncode == 3, shown.stderr
    assert "['-x', 'y'] __main__" in shown.stdout
    assert "25 ×" in shown.stdout
    archive = tmp_path / "script.fold"
    subprocess.run([*run, "-o", str(archive), "--events", "lines", "--no-times", str(script)])
    assert loopfold.open(archive).find("script.py:4")["count"] == 25
    wrong = subprocess.run([*run, "--events", "x", str(script)], capture_output=True, text=True)
    assert "cannot trace 'x'" in wrong.stderr


def test_a_recorder() -> None:
    recorder = loopfold.Recorder()
    with pytest.raises(ValueError, match="still records"):
        recorder.fold
    with recorder:
        for step in range(10):
            recorder.push(7, start=10 * step, duration=4)
            recorder.push("x", "other")
    assert recorder.events == 0
    assert recorder.fold.stats()["durations"]["total_ns"] == 40
    assert recorder.fold.expand(stream="main").tolist() == [7] * 10
    with pytest.raises(ValueError, match="the recorder has ended"):
        recorder.push(1)
    with pytest.raises(TypeError, match="event 0 is a float"):
        loopfold.Recorder().push(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must see a stream as a whole"):
        loopfold.Recorder(folder="outermost")


class Profiler:
    """Stands in for the profiler of PyTorch."""

    def export_chrome_trace(self, path: str) -> None:
        slices: List[Dict[str, Any]] = [
            {"name": name, "ph": "X", "cat": cat, "pid": 1, "tid": 7, "ts": 100 * step + place, "dur": 5}
            for step in range(20)
            for place, (name, cat) in enumerate([("gemm", "kernel"), ("add", "kernel"), ("copy", "gpu_memcpy")])
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": slices}, file)


def test_a_profile_of_pytorch(tmp_path: pathlib.Path) -> None:
    handler = loopfold.TraceHandler(category="kernel")
    handler(Profiler())
    handler(Profiler())
    assert [fold.find("gemm add")["count"] for fold in handler.folds] == [20, 20]
    assert handler.folds[0].stats()["events"] == 40
    kept = loopfold.TraceHandler(tmp_path / "profiles")
    kept(Profiler())
    assert loopfold.open(tmp_path / "profiles" / "profile-0.fold").stats()["events"] == 60
