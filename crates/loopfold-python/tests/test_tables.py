"""Rows for pandas, polars, pyarrow and DuckDB."""

from __future__ import annotations

import pathlib
import subprocess

import duckdb
import loopfold
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def test_data_tools_take_tables() -> None:
    fold = loopfold.fold("a b c a b c a b c d".split())
    table = fold.hot(min_cost=3).table()
    arrow = pa.table(table)
    assert arrow.column_names == ["events", "count", "cost", "share", "streams", "stream_counts"]
    assert arrow["events"][0].as_py() == ["a", "b"]
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["count"].tolist() == table.column("count")
    polars = table.to_polars()
    assert isinstance(polars, pl.DataFrame)
    assert polars["count"].to_list() == table.column("count")
    counts = fold.stats().table("counts").to_arrow()
    assert duckdb.sql("select sum(count) from counts").fetchall() == [(10,)]
    assert len(counts) == 4


def test_names_of_tables() -> None:
    answer = loopfold.fold([1, 2]).stats()
    assert answer.tables == ["counts", "durations", "metrics", "stream_list"]
    with pytest.raises(ValueError, match="no table is called 'x'; there are counts, durations"):
        answer.table("x")
    with pytest.raises(ValueError, match="all=True"):
        loopfold.fold([1]).find("1").table()
    with pytest.raises(ValueError, match="per_stream=True to get the streams"):
        loopfold.fold([1, 2]).find("1", before="2").table()
    with pytest.raises(ValueError, match="skeleton has no table"):
        loopfold.Answer("skeleton", {}).table()


def test_a_wrong_query_is_a_row(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(loopfold.Note, match="line 2: "):
        answers = loopfold.fold(["a", "b"]).find_many(["a", "/[/"])
    assert answers.table().column("count") == [1, None]
    assert answers.table().column("error")[0] is None
    assert "regular expression" in answers.table().column("error")[1]
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::loopfold.Note")
def test_what_is_not_known_is_null() -> None:
    table = loopfold.fold([1, 2] * 5).iterations().table()
    assert len(table) == 5
    assert table.to_arrow()["duration_ns"].null_count == 5
    assert table.to_arrow().schema.field("duration_ns").type == pa.int64()
    empty = loopfold.fold([1, 2, 3]).patterns().table()
    assert len(empty) == 0
    assert empty.columns[0] == "id"


def test_events_as_rows() -> None:
    with loopfold.Recorder() as recorder:
        for step in range(3):
            recorder.push("x", start=step, duration=1)
    table = recorder.fold.window(1, times=True).table()
    assert table.column("position") == [1, 2]
    assert table.column("start_ns") == [1, 2]
    assert "position" in repr(table)


@pytest.mark.filterwarnings("ignore::loopfold.Note")
def test_tables_are_those_of_the_command(command: str, tmp_path: pathlib.Path) -> None:
    lines = ["name,start_ns,dur_ns,pages"]
    for step in range(40):
        lines += [f"{name},{100 * step + place},{7 + step % 3},{place}" for place, name in enumerate("abc")]
    trace = tmp_path / "x.csv"
    trace.write_text("\n".join(lines) + "\n")
    reading = {"event": "name", "start": "start_ns", "duration": "dur_ns", "metric": "pages"}
    options = [word for name, value in reading.items() for word in (f"--{name}", value)]
    fold = loopfold.open(trace, **reading)
    texts = ["a", "b c", "d", "/[ab]/ c"]
    queries = tmp_path / "queries"
    queries.write_text("\n".join(texts) + "\n")
    stats = ["counts", "durations", "metrics", "stream_list"]
    asked = [
        (["loops"], fold.loops(), ["classes"]),
        (["iterations"], fold.iterations(), ["iterations"]),
        (["iterations", "--slow", "2"], fold.iterations(slow=2), ["slow"]),
        (["hot"], fold.hot(), ["subpaths"]),
        (["stats"], fold.stats(), stats),
        (["stats", "--streams"], fold.streams(), ["stream_list"]),
        (["find", "--all"], fold.find("a b", all=True), ["all"]),
        (["find", "--per-stream"], fold.find("a b", per_stream=True), ["streams"]),
        (["find", "--before", "c"], fold.find("a b", before="c", per_stream=True), ["streams"]),
        (["context", "--depth", "5"], fold.context("a b", depth=5), ["neighbours"]),
        (["context", "--top", "1"], fold.context("a b", top=1), ["neighbours"]),
        (["find", "--queries", str(queries)], fold.find_many(texts), ["queries"]),
        (["patterns"], fold.patterns(), ["patterns", "matrix", "unmatched"]),
        (["cat", "--times"], fold.window(times=True), ["events"]),
    ]
    written = tmp_path / "x.parquet"
    for arguments, answer, names in asked:
        query = ["a b"] if arguments[0] in ("find", "context") and "--queries" not in arguments else []
        for name in names:
            table = ["--table", "parquet", "--rows", name, "-o", str(written)]
            subprocess.run([command, *arguments, *options, *table, "--", str(trace), *query], capture_output=True)
            expected = pq.read_table(written)
            is_list = isinstance(answer, loopfold.Answers)
            found = pa.table(answer.table() if is_list else answer.table(name))
            assert found.schema.equals(expected.schema), (arguments, name)
            assert found.to_pylist() == expected.to_pylist(), (arguments, name)
        # The default table is the one that the answer has.
        assert isinstance(answer, loopfold.Answers) or pa.table(answer.table()).equals(pa.table(answer.table(names[0]))), arguments


def test_segments_are_those_of_the_command(command: str, tmp_path: pathlib.Path) -> None:
    fold = loopfold.fold("init read add write read add write done".split())
    fold.export("parquet", tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == pa.table(fold.segments().table()).to_pylist()
