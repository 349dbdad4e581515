"""Rows for pandas, polars, pyarrow and DuckDB."""

from __future__ import annotations

import duckdb
import loopfold
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


def test_data_tools_take_tables() -> None:
    fold = loopfold.fold("a b c a b c a b c d".split())
    table = fold.hot(min_cost=3).table()
    arrow = pa.table(table)
    assert arrow.column_names == ["events", "count", "cost", "share", "streams"]
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
    assert answer.tables == ["counts", "durations", "stream_list"]
    with pytest.raises(ValueError, match="no table is called 'x'; there are counts, durations"):
        answer.table("x")
    with pytest.raises(ValueError, match="all=True"):
        loopfold.fold([1]).find("1").table()
    with pytest.raises(ValueError, match="context has no table"):
        loopfold.fold([1, 2]).context("1").table()


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
