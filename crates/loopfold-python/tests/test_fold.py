"""Events from memory, and back."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import threading
import time
from typing import Any, List

import loopfold
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

DTYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FOLDERS = ["auto", "outermost", "innermost", "repair", "sequitur", "sequitur-runs", "smallest"]


def random_events(rng: random.Random, length: int) -> List[int]:
    events: List[int] = []
    while len(events) < length:
        body = [rng.randrange(6) for _ in range(rng.randrange(1, 6))]
        events += body * rng.randrange(1, 8)
    return events[:length]


@pytest.mark.parametrize("folder", FOLDERS)
def test_integers_come_back_with_their_type(folder: str) -> None:
    rng = random.Random(1)
    for dtype in DTYPES:
        for length in (0, 1, 7, 300):
            events = np.array(random_events(rng, length), dtype)
            back = loopfold.fold(events, folder=folder).expand()
            assert back.dtype == events.dtype
            assert np.array_equal(back, events)


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_integers(dtype: str, tmp_path: pathlib.Path) -> None:
    limits = np.iinfo(dtype)
    events = np.array([limits.min, limits.max, 0, 1, limits.max // 2] * 3, dtype)
    fold = loopfold.fold(events)
    assert np.array_equal(fold.expand(), events)
    assert fold.find(str(limits.max))["count"] == 3
    fold.save(tmp_path / "x.fold")
    back = loopfold.open(tmp_path / "x.fold").expand()
    assert back.dtype == events.dtype
    assert np.array_equal(back, events)


def test_negative_integers_are_events_by_their_text() -> None:
    fold = loopfold.fold(np.array([-5, 2, -5, 2, -5]))
    assert fold.window()["streams"][0]["events"] == ["-5", "2", "-5", "2", "-5"]
    assert fold.find("-5")["count"] == 3
    assert fold.expand().tolist() == [-5, 2, -5, 2, -5]
    assert loopfold.fold([-5, 2]).expand().dtype == np.int64


def test_long_arrays_are_unfolded_in_parts() -> None:
    rng = np.random.default_rng(7)
    events = np.concatenate([np.tile(rng.integers(0, 50, 997), 2000), rng.integers(0, 2**31, 300_000)])
    events = events.astype(np.uint32)
    fold = loopfold.fold(events)
    assert np.array_equal(fold.expand(), events)
    assert np.array_equal(fold.expand(start=1_000_001, stop=1_200_000), events[1_000_001:1_200_000])


def test_arrays_that_are_folded_as_they_are() -> None:
    rng = random.Random(9)
    for length in (0, 1, 5, 40, 400, 4000):
        numbers = [rng.randrange(2**31) for _ in range(6)]
        events = [numbers[event] for event in random_events(rng, length)]
        direct = loopfold.fold(np.array(events, np.uint32), folder="outermost")
        interned = loopfold.fold(np.array(events, np.uint64), folder="outermost")
        assert direct.expand().tolist() == events
        assert direct.loops() == interned.loops()
        assert direct.stats()["counts"] == interned.stats()["counts"]
    large = np.array([2**31, 2**32 - 1] * 3, np.uint32)
    assert loopfold.fold(large, folder="outermost").expand().tolist() == large.tolist()


def test_arrays_are_read_where_they_lie() -> None:
    events = np.arange(40, dtype=np.int32).reshape(10, 4) % 3
    views = [events[:, 1], events[::-2, 0], events[3], events.T[2]]
    views.append(np.frombuffer(b"\x00" + events.tobytes(), np.int32, 5, offset=1))
    for view in views:
        assert np.array_equal(loopfold.fold(view).expand(), view)
    events.flags.writeable = False
    assert np.array_equal(loopfold.fold(events[0]).expand(), events[0])


def test_lists_and_iterables() -> None:
    assert loopfold.fold(["a", 1, b"\xff", "ä", 2**64 - 1]).expand() == ["a", "1", "\\xff", "ä", str(2**64 - 1)]
    assert loopfold.fold(x % 3 for x in range(9)).expand().tolist() == [0, 1, 2] * 3
    assert loopfold.fold(np.array(["x", "y", "x"])).expand() == ["x", "y", "x"]
    assert loopfold.fold(np.array(["x", 3], dtype=object)).expand() == ["x", "3"]
    assert loopfold.fold([]).stats()["events"] == 0
    assert loopfold.fold(b"abab").expand().tolist() == [97, 98, 97, 98]


TEXTS = ["read", "write", "read", "write", "close"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array([text.encode() for text in TEXTS]),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
        pa.chunked_array([pa.array(TEXTS[:2]).dictionary_encode(), pa.array(TEXTS[2:]).dictionary_encode()]),
        pa.array(["no", *TEXTS, "no"]).dictionary_encode().slice(1, 5),
        pl.Series(TEXTS),
        pl.Series(TEXTS, dtype=pl.Categorical),
        pl.concat([pl.Series(TEXTS[:1]), pl.Series(TEXTS[1:])], rechunk=False),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="category"),
        pd.Series(TEXTS, dtype=object),
    ],
)
def test_columns_of_texts(column: Any) -> None:
    assert loopfold.fold(column).expand() == TEXTS


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_of_integers(dtype: str) -> None:
    numbers = np.array([1, 2, 1, 2, 100], dtype)
    if dtype.startswith("int"):
        numbers[4] = -7
    columns = [
        pa.array(numbers),
        pa.chunked_array([numbers[:3], numbers[3:]]),
        pa.array(np.concatenate([numbers, numbers])).slice(5),
        pl.Series(numbers),
        pd.Series(numbers),
    ]
    for column in columns:
        back = loopfold.fold(column).expand()
        assert back.dtype == dtype
        assert np.array_equal(back, numbers)
    assert loopfold.fold(pa.array(numbers).dictionary_encode()).expand().tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("events", "error", "text"),
    [
        (np.array([1.5, 2.0]), TypeError, "an array of float64; events are integers, str or bytes: round"),
        (np.array([True]), TypeError, "an array of bool"),
        (np.array([1 + 2j]), TypeError, "an array of complex128"),
        (np.array(["2020-01-01"], "datetime64[D]"), TypeError, "an array of datetime64"),
        (np.zeros((2, 2), int), ValueError, "an array of 2 dimensions"),
        (np.array(3), ValueError, "an array of 0 dimensions"),
        (np.array([1], ">u4"), TypeError, "another byte order"),
        (pa.array([1.5]), TypeError, "a column of Float64"),
        (pa.array([1, None]), ValueError, "event 1 is null"),
        (pa.chunked_array([["a"], ["b", None]]), ValueError, "event 2 is null"),
        (pa.array(["a", None]).dictionary_encode(), ValueError, "event 1 is null"),
        (pa.table({"x": [1]}), TypeError, "a table; choose one of its columns"),
        (pl.DataFrame({"x": [1]}), TypeError, "a table; choose one of its columns"),
        (pl.Series([[1]]), TypeError, "a column of"),
        (["a", 1.5], TypeError, "event 1 is a float; events are integers, str or bytes"),
        ([None], TypeError, "event 0 is a NoneType"),
        ([True], TypeError, "event 0 is a bool"),
        (["a", "\ud800"], ValueError, "event 1 is '\\ud800', which has a lone surrogate"),
        ([2**64], ValueError, "event 0 does not fit in 64 bits"),
        ([-(2**63) - 1], ValueError, "event 0 does not fit in 64 bits"),
        ([2**200], ValueError, "event 0 does not fit in 64 bits"),
        ("abc", TypeError, "a str is one event"),
        (3, TypeError, "a int cannot be folded"),
    ],
)
def test_bad_events(events: Any, error: Any, text: str) -> None:
    with pytest.raises(error) as raised:
        loopfold.fold(events)
    assert text in str(raised.value)


def test_bad_outputs() -> None:
    fold = loopfold.fold(np.array([1, 2, 3], np.uint16))
    out = np.zeros(3, np.uint16)
    assert fold.expand(out=out) is out
    assert out.tolist() == [1, 2, 3]
    locked = np.zeros(3, np.uint16)
    locked.flags.writeable = False
    for bad, error, text in [
        (locked, ValueError, "out is read-only"),
        (np.zeros(6, np.uint16)[::2], ValueError, "out is not contiguous"),
        (np.zeros(2, np.uint16), ValueError, "out has room for 2 events; there are 3"),
        (np.zeros(3, np.uint32), TypeError, "out is an array of uint32; one of uint16 is needed"),
        ([0, 0, 0], TypeError, "out is not an array"),
    ]:
        with pytest.raises(error, match=text):
            fold.expand(out=bad)
    with pytest.raises(ValueError, match="do not fit in uint8"):
        loopfold.fold([300]).expand(dtype="uint8")
    with pytest.raises(TypeError, match="the events are not integers"):
        loopfold.fold(["a"]).expand(dtype="uint8")


def test_folders_have_names() -> None:
    with pytest.raises(ValueError, match="no folder is called outer; there are auto, outermost"):
        loopfold.fold([1], folder="outer")


def test_a_closed_fold() -> None:
    fold = loopfold.fold([1, 2, 1, 2])
    with fold:
        assert fold.find("1")["count"] == 2
    for ask in (fold.loops, fold.expand, fold.segments, fold.stats, lambda: fold.save("x.fold")):
        with pytest.raises(ValueError, match="the trace is closed"):
            ask()
    assert repr(fold) == "<loopfold.Fold of <memory>, closed>"
    assert not os.path.exists("x.fold")


def test_threads_share_a_fold() -> None:
    fold = loopfold.fold([1, 2, 3] * 1000)
    counts: List[int] = []
    threads = [threading.Thread(target=lambda: counts.append(fold.find("1 2")["count"])) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1000] * 20


def test_other_threads_run_while_it_folds() -> None:
    events = np.random.default_rng(1).integers(0, 2**20, 1_500_000)
    moments: List[float] = []
    ended = threading.Event()

    def count() -> None:
        while not ended.is_set():
            moments.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    loopfold.fold(events)
    ended.set()
    thread.join()
    assert len(moments) > 10


INTERRUPTED = """
import loopfold, numpy, os, pathlib, signal, sys, threading
# Whoever started this may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = pathlib.Path(sys.argv[1])
threads = lambda: len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0

def interrupt(work):
    "Interrupts work after a while; more of it if that was too little."
    length = 4_000_000
    while True:
        length *= 2
        events = numpy.random.default_rng(1).integers(0, 256, length, dtype="uint32")
        before = threads()
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        try:
            work(events)
            timer.cancel()
            timer.join()
        except KeyboardInterrupt:
            timer.join()
            assert threads() == before, (threads(), before)
            assert list(folder.iterdir()) == []
            return

for name in ["repair", "outermost", "auto", "sequitur-runs", "innermost"]:
    interrupt(lambda events: loopfold.fold(events, folder=name))
folds = {}
def save(events):
    fold = folds.setdefault(len(events), loopfold.fold(events % 7, folder="outermost"))
    fold.save(folder / "x.fold", smallest=True)
    (folder / "x.fold").unlink()
interrupt(save)
# What was interrupted can be asked again.
assert any(fold.find("0 1")["count"] > 0 for fold in folds.values()) or not folds
print("interrupted", loopfold.fold([1, 1, 1]).expand().tolist(), flush=True)
"""


def test_an_interrupt(tmp_path: pathlib.Path) -> None:
    """Afterwards no thread works on, and nothing is written."""
    program = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "interrupted [1, 1, 1]", done.stderr


READING = """
import loopfold, os, signal, threading
# Whoever started this may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    loopfold.open({path!r}, format="lines").stats()
    print("read")
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interrupt_while_reading(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = subprocess.Popen(
        [sys.executable, "-c", READING.format(path=str(path))], stdout=subprocess.PIPE, text=True
    )
    with open(path, "w") as writer:
        writer.write("a\nb\n" * 1000)
        writer.flush()
        output, _ = reader.communicate(timeout=60)
    assert output.strip() == "interrupted True"


def test_how_it_looks() -> None:
    fold = loopfold.fold("start a b a b a b end".split())
    assert repr(fold).splitlines()[0].startswith("main · 3 × (2 events), 75 % of the events")
    html = fold._repr_html_()
    assert html.count("<details") == html.count("</details>") == 2
    assert "<summary><b>3 ×</b> a …</summary>" in html
    hostile = loopfold.fold(["<script>", "<script>"])._repr_html_()
    assert "<script>" not in hostile
    assert "&lt;script&gt;" in hostile
