"""Segments, samples, predictions, and the examples that use them."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import random
import struct
import subprocess
import sys
import types
from typing import Any, Dict

import loopfold
import numpy as np
import pytest

from test_fold import random_events

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.mark.parametrize("folder", ["outermost", "innermost", "repair", "sequitur"])
def test_weights_sum_up_to_the_length(folder: str) -> None:
    rng = random.Random(3)
    for length in (1, 10, 200, 3000):
        events = random_events(rng, length)
        fold = loopfold.fold(events, folder=folder)
        segments = fold.segments(folder=folder)
        assert int(segments.weight.sum()) == length
        for segment in segments:
            found = events[segment.start : segment.start + segment.length]
            assert [str(event) for event in found] == segment.labels
        for steady_state in (1, 2, 5):
            sample = fold.sample(steady_state, folder=folder)
            assert int(sample.weights.sum()) == length
            assert [str(events[place]) for place in sample.positions] == sample.labels


def test_a_prediction_equals_the_sum_over_the_trace() -> None:
    events = random_events(random.Random(4), 2000)
    fold = loopfold.fold(events)
    segments = fold.segments()

    def cost(labels: Any) -> float:
        return float(len(labels)) + sum(map(int, labels)) / 7

    predicted = fold.predict(lambda segment: cost(segment.labels))
    # Every event of the trace, with the segment it lies in.
    whole = sum(cost(segment.labels) * segment.length for segment in segments for _ in range(segment.times))
    assert predicted == pytest.approx(whole)


def test_batches() -> None:
    segments = loopfold.fold(random_events(random.Random(5), 1000)).segments()
    for seed in (None, 1):
        shares, seen = 0.0, 0
        for symbols, lengths, weights in segments.batches(4, seed):
            assert symbols.shape == (len(lengths), lengths.max())
            assert [(row >= 0).sum() for row in symbols] == lengths.tolist()
            shares, seen = shares + float(weights.sum()), seen + len(lengths)
        assert seen == len(segments)
        assert shares == pytest.approx(1.0)
    with pytest.raises(ValueError, match="at least one"):
        next(segments.batches(0))
    with pytest.raises(IndexError, match="segments"):
        segments[len(segments)]
    assert segments[-1].start == segments[len(segments) - 1].start


def test_bad_samples() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        loopfold.fold([1]).sample(0)


def test_several_streams_and_windows(tmp_path: pathlib.Path) -> None:
    with loopfold.Recorder() as recorder:
        for _ in range(10):
            recorder.push("a", "first")
            recorder.push("b", "second")
    sample = recorder.fold.sample(steady_state=2)
    windows, weights = sample.windows(2)
    assert windows.tolist() == [[-1, 0], [0, 0], [-1, 1], [1, 1]]
    assert weights.tolist() == [1, 9, 1, 9]


def test_a_dataset_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    data = types.ModuleType("torch.utils.data")
    data.Dataset = object  # type: ignore[attr-defined]
    for name, module in {"torch": types.ModuleType("torch"), "torch.utils": types.ModuleType("torch.utils"), "torch.utils.data": data}.items():
        monkeypatch.setitem(sys.modules, name, module)
    fold = loopfold.fold([1, 2] * 10)
    dataset = fold.segments().dataset()
    symbols, weight = dataset[0]
    assert (len(dataset), symbols.tolist(), weight) == (1, [0, 1], 20.0)
    assert len(fold.sample(2).dataset(3)) == 4


def test_the_command_writes_the_training_set(tmp_path: pathlib.Path, command: str) -> None:
    events = ["start"] + ["a b", "c"] * 5
    fold = loopfold.fold(events)
    path = str(tmp_path / "x.fold")
    fold.save(path)
    table = subprocess.run([command, "export", path, "--to", "weights"], check=True, capture_output=True, text=True)
    assert table.stdout.splitlines() == [
        "stream,start,length,depth,times,weight,events",
        "main,0,1,0,1,1,start",
        'main,1,2,1,5,10,"""a b"" c"',
    ]
    assert fold.export("weights") == table.stdout
    subprocess.run([command, "export", path, "--to", "safetensors", "-o", str(tmp_path / "x.st")], check=True)
    content = (tmp_path / "x.st").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header: Dict[str, Any] = json.loads(content[8 : 8 + length])
    assert json.loads(header["__metadata__"]["labels"]) == ["start", "a b", "c"]

    def tensor(name: str, dtype: str) -> Any:
        first, end = header[name]["data_offsets"]
        return np.frombuffer(content[8 + length + first : 8 + length + end], dtype)

    assert tensor("weight", "<u8").tolist() == [1, 10]
    assert tensor("offsets", "<u8").tolist() == [0, 1, 3]
    assert tensor("symbols", "<u4").tolist() == [0, 1, 2]


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figure_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = example("stencil", monkeypatch).main(1_000_000)
    assert result["written"] < 500
    assert "(cs)^1024" in capsys.readouterr().out


def test_training_on_weighted_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    results = example("train", monkeypatch).main(100_000, seeds=3)
    whole, sample = results["everything"], results["steady_state=8"]
    assert sample["rows"] * 20 <= whole["rows"]
    assert abs(sample["error"] - whole["error"]) <= whole["spread"]


def test_tables_for_duckdb(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOOPFOLD_COMMAND", command)
    found = example("tables", monkeypatch).main(tmp_path)
    assert found == [["worker 1", step, 780, "load", 400] for step in (49, 99, 149)]
    assert "event_ns" in capsys.readouterr().out


def test_figure_6(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    figures = example("figures", monkeypatch)
    rng = random.Random(1)
    assert len(figures.hier(rng, 5000)) == len(figures.rand(rng, 5000)) == 5000
    nested = loopfold.fold(figures.hier(rng, 20_000), folder="outermost").loops(exact=True)["classes"][0]
    assert nested["covered"] > 0.3
    figures.main(str(tmp_path), 10_000)
    assert (tmp_path / "figure-6a.svg").read_text().count("<rect") == 5
    assert "speedup" in (tmp_path / "figure-6b.svg").read_text()
