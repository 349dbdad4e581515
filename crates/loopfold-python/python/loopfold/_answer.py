"""Answers as dictionaries, and their rows as Arrow tables."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _native

Column = Tuple[str, str]
Row = Dict[str, Any]


class Note(UserWarning):
    """What the command prints as a note: something that the user should know."""


class Table:
    """Rows as Arrow, for pandas, polars, pyarrow, DuckDB and whatever else takes Arrow data.

    >>> table = loopfold.fold([1, 2, 1, 2, 3]).stats().table("counts")
    >>> table.column("event"), table.column("count")
    (['1', '2', '3'], [2, 2, 1])
    >>> len(table), table.columns
    (3, ['event', 'count'])
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        self.columns = [name for name, _ in columns]
        self._values: Dict[str, List[Any]] = {
            name: [_cell(row.get(name), of) for row in rows] for name, of in columns
        }
        self._length = len(rows)
        self._table = _native.table([(name, of, self._values[name]) for name, of in columns])

    def __len__(self) -> int:
        return self._length

    def column(self, name: str) -> List[Any]:
        """The values of a column."""
        return self._values[name]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._table.__arrow_c_schema__()

    def to_arrow(self) -> Any:
        """A table of pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """A data frame of pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A data frame of polars."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        rows = [self.columns] + [
            [_short(self._values[name][index]) for name in self.columns]
            for index in range(min(self._length, 10))
        ]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        if self._length > 10:
            lines.append(f"… and {self._length - 10:,} more")
        return "\n".join(lines)


def _short(value: Any) -> str:
    text = "" if value is None else " ".join(value) if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _cell(value: Any, of: str) -> Any:
    if value is None or of != "string" and of != "float64":
        return value
    if of == "float64":
        return float(value)
    return value if isinstance(value, str) else json.dumps(value)


_TIME = [("time_ns", "int64"), ("share", "float64"), ("count", "uint64")]
_PLACE = [("stream", "string"), ("start", "uint64"), ("end", "uint64"), ("start_ns", "int64")]
_ITERATION = [
    ("iteration", "uint64"),
    ("outer", "string"),
    ("first_event", "uint64"),
    ("events", "uint64"),
    ("iterations", "uint64"),
    ("start_ns", "int64"),
    ("since_start_ns", "int64"),
    ("duration_ns", "int64"),
    ("busy_ns", "int64"),
    ("last", "bool"),
    ("exception", "uint64"),
]

# The tables of each answer; the first is the default.
_TABLES: Dict[str, Dict[str, List[Column]]] = {
    "loops": {
        "classes": [
            ("class", "uint64"),
            ("streams", "list"),
            ("events", "uint64"),
            ("folded", "uint64"),
            ("ratio", "float64"),
            ("covered", "float64"),
            ("main_share", "float64"),
        ]
    },
    "hot": {
        "subpaths": [
            ("events", "list"),
            ("count", "uint64"),
            ("cost", "float64"),
            ("share", "float64"),
            ("streams", "list"),
        ]
    },
    "iterations": {"iterations": [("stream", "string"), ("loop", "uint64"), *_ITERATION]},
    "stats": {
        "counts": [("event", "string"), ("count", "uint64")],
        "durations": [
            ("event", "string"),
            ("known", "uint64"),
            ("total_ns", "int64"),
            ("mean_ns", "float64"),
            ("self_ns", "int64"),
            ("share", "float64"),
        ],
        "stream_list": [
            ("stream", "string"),
            ("events", "uint64"),
            ("span_ns", "int64"),
            ("folder", "string"),
        ],
    },
    "streams": {
        "stream_list": [
            ("number", "uint64"),
            ("stream", "string"),
            ("title", "string"),
            ("events", "uint64"),
            ("format", "string"),
        ]
    },
    "find": {"all": _PLACE, "streams": [("stream", "string"), ("count", "uint64")]},
    "similar": {
        "matches": [
            ("stream", "string"),
            ("start", "uint64"),
            ("end", "uint64"),
            ("distance", "uint64"),
        ]
    },
    "patterns": {
        "patterns": [
            ("id", "uint64"),
            ("kind", "string"),
            ("count", "uint64"),
            ("places", "uint64"),
            ("length", "uint64"),
            ("share", "float64"),
            ("processes", "list"),
        ],
        "matrix": [("from", "uint64"), ("to", "uint64"), ("messages", "uint64"), ("bytes", "uint64")],
    },
    "waits": {
        "places": [("class", "string"), ("call", "string"), ("function", "string"), *_TIME],
        "pairs": [("waiting", "uint64"), ("cause", "uint64"), *_TIME],
        "iterations": [
            ("times", "uint64"),
            ("first", "uint64"),
            ("last", "uint64"),
            ("time_ns", "int64"),
            ("start_ns", "int64"),
            ("since_start_ns", "int64"),
        ],
    },
    "cat": {
        "events": [
            ("stream", "string"),
            ("position", "uint64"),
            ("event", "string"),
            ("start_ns", "int64"),
            ("duration_ns", "int64"),
        ]
    },
}


class Answer(Dict[str, Any]):
    """What the command prints with `--json`, as a dictionary; `table()` has its rows."""

    def __init__(self, command: str, content: Dict[str, Any], found: bool = True) -> None:
        super().__init__(content)
        self.command = command
        #: False if nothing was found: then the exit status of the command is 1.
        self.found = found

    @property
    def tables(self) -> List[str]:
        """The names of its tables; the first is the default."""
        return list(_TABLES.get(self.command, {}))

    def table(self, name: Optional[str] = None) -> Table:
        """Its rows as an Arrow table.

        >>> loopfold.fold("a b a b a b a b".split()).hot(top=1).table()
        events  count  cost  share  streams
        a b     4      8.0   1.0    main
        """
        tables = _TABLES.get(self.command)
        if not tables:
            raise ValueError(f"the answer of {self.command} has no table")
        name = name or next(iter(tables))
        if name not in tables:
            raise ValueError(f"no table is called {name!r}; there are {', '.join(tables)}")
        return Table(tables[name], self._rows(name))

    def _rows(self, name: str) -> List[Row]:
        if self.command == "iterations":
            return [
                {"stream": loop.get("stream"), "loop": loop.get("loop"), **row}
                for loop in self.get("loops", [])
                for row in loop.get("iterations", loop.get("slow", []))
            ]
        if self.command == "cat":
            return [row for stream in self["streams"] for row in _events(stream)]
        rows = self.get(name)
        if isinstance(rows, dict):
            rows = rows.get("events")
        if name == "all" and rows is None:
            raise ValueError("ask with all=True to get the places as a table")
        return list(rows or [])


def _events(stream: Row) -> List[Row]:
    first = stream["from"]
    rows: List[Row] = []
    for index, event in enumerate(stream["events"]):
        row = {"stream": stream["stream"], "position": first + index, "event": event}
        for key, unknown in (("start_ns", -(2**63)), ("duration_ns", -1)):
            values = stream.get(key)
            if values and values[index] != unknown:
                row[key] = values[index]
        rows.append(row)
    return rows
