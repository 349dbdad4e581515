"""Tables that the command writes as Parquet, asked by DuckDB.

DuckDB opens them without any conversion, and joins them: which steps of a program take longer than
usual, and which of their events takes longest.

    python tables.py [DIRECTORY]
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import List

import duckdb

COMMAND = os.environ.get("LOOPFOLD_COMMAND", "loopfold")
READING = ["--event", "name", "--start", "start_ns", "--duration", "dur_ns", "--stream-by", "worker"]


def trace(path: pathlib.Path, steps: int = 200) -> None:
    """Two workers that load, compute and store; every fiftieth load of the second one is slow."""
    with path.open("w", encoding="utf-8") as file:
        file.write("name,start_ns,dur_ns,worker\n")
        for worker in (0, 1):
            clock = 0
            for step in range(steps):
                load = 400 if worker == 1 and step % 50 == 49 else 100
                for name, duration in (("load", load), ("compute", 300), ("store", 50)):
                    file.write(f"{name},{clock},{duration},worker {worker}\n")
                    clock += duration + 10


def table(rows: List[str], written: pathlib.Path) -> None:
    """Asks the command for a table."""
    subprocess.run([COMMAND, *rows, "--table", "parquet", "-o", str(written)], check=True)


def main(directory: pathlib.Path) -> List[List[object]]:
    source = directory / "steps.csv"
    trace(source)
    iterations, events = directory / "iterations.parquet", directory / "events.parquet"
    table(["iterations", str(source), *READING], iterations)
    table(["cat", str(source), *READING, "--times"], events)

    slow = f"""
        with steps as (
            select *, median(duration_ns) over (partition by stream) as usual from '{iterations}'
        )
        select steps.stream, iteration, steps.duration_ns as step_ns, event, events.duration_ns as event_ns
        from steps join '{events}' as events
            on events.stream = steps.stream
            and events.position between first_event and first_event + steps.events - 1
        where steps.duration_ns > 1.2 * usual and not last
        qualify row_number() over (partition by steps.stream, iteration order by events.duration_ns desc) = 1
        order by steps.stream, iteration
    """
    found = duckdb.sql(slow)
    print(found)
    return [list(row) for row in found.fetchall()]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(pathlib.Path(name))
