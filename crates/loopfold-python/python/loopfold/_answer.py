"""Answers as dictionaries, and their rows as Arrow tables."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

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
    text = "" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _cell(value: Any, of: str) -> Any:
    if value is None or isinstance(value, dict):
        return None
    return float(value) if of == "float64" else value


class _Definition(NamedTuple):
    """A table of the command `--table`: where its rows lie in the answer, and its columns."""

    rows: str
    #: Name and type of each column; whether it lies around the rows, and its place.
    columns: List[Tuple[str, str, bool, str]]

    def row(self, around: Dict[str, Row]) -> Row:
        """A row from the objects around it, by their places."""
        values: Row = {}
        for name, _, is_around, keys in self.columns:
            place, _, keys = keys.rpartition(".") if is_around else (self.rows, "", keys)
            value: Any = around[place]
            for key in keys.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            values[name] = value
        return values


# The tables of each answer; the first is the default.
_TABLES: Dict[str, Dict[str, _Definition]] = {
    command: {name: _Definition(rows, columns) for name, rows, columns in tables}
    for command, tables in _native.tables().items()
}


def columns_of(command: str, name: str) -> List[Column]:
    """The columns of a table of the command."""
    return [(column, of) for column, of, _, _ in _TABLES[command][name].columns]


def _visit(value: Any, keys: List[str], place: str, around: Dict[str, Row]) -> Iterator[Dict[str, Row]]:
    """The objects at a place, each with those around it."""
    if isinstance(value, list):
        for item in value:
            yield from _visit(item, keys, place, around)
    elif isinstance(value, dict):
        around = {**around, place: value}
        if not keys:
            yield around
        elif keys[0] in value:
            inner = f"{place}.{keys[0]}" if place else keys[0]
            yield from _visit(value[keys[0]], keys[1:], inner, around)


class Answer(Dict[str, Any]):
    """What the command prints with `--json`, as a dictionary; `table()` has its rows."""

    def __init__(self, command: str, content: Dict[str, Any], found: bool = True) -> None:
        super().__init__(content)
        self.command = command
        #: False if nothing was found: then the exit status of the command is 1.
        self.found = found

    @property
    def _kind(self) -> str:
        """Which tables it has: those of its command, or of an option."""
        return "before" if self.command == "find" and "before" in self else self.command

    @property
    def tables(self) -> List[str]:
        """The names of its tables; the first is the default."""
        return list(_TABLES.get(self._kind, {}))

    def table(self, name: Optional[str] = None) -> Table:
        """Its rows as an Arrow table.

        >>> loopfold.fold("a b a b a b a b".split()).hot(top=1).table()
        events  count  cost  share  streams  stream_counts
        a b     4      8.0   1.0    main     4
        """
        tables = _TABLES.get(self._kind)
        if not tables:
            raise ValueError(f"the answer of {self.command} has no table")
        name = name or next((name for name, table in tables.items() if self._has(table)), next(iter(tables)))
        if name not in tables:
            raise ValueError(f"no table is called {name!r}; there are {', '.join(tables)}")
        if self.command == "cat":
            rows = [row for stream in self["streams"] for row in _events(stream)]
        elif self.command == "context":
            rows = [row for side in ("after", "before") for row in _neighbours(side, self[side])]
        elif self._kind == "before" and not self._has(tables[name]):
            raise ValueError("ask with per_stream=True to get the streams as a table")
        elif self.command == "find" and not self._has(tables[name]):
            raise ValueError("ask with all=True to get the places as a table, or with per_stream=True")
        else:
            place = tables[name].rows.split(".")
            rows = [tables[name].row(around) for around in _visit(dict(self), place, "", {})]
        return Table(columns_of(self._kind, name), rows)

    def _has(self, table: _Definition) -> bool:
        """Whether the answer has such rows, or none of them."""
        around, _, last = table.rows.rpartition(".")
        objects = _visit(dict(self), around.split(".") if around else [], "", {})
        return any(last in found[around] for found in objects)


class Answers(List[Answer]):
    """The answers to many queries; `table()` has a row for each.

    >>> loopfold.fold("a b a b c".split()).find_many(["a b", "c"]).table().column("count")
    [2, 1]
    """

    def table(self) -> Table:
        """A row for each query, as an Arrow table."""
        rows = [row for row in _visit({"queries": [dict(answer) for answer in self]}, ["queries"], "", {})]
        definition = _TABLES["queries"]["queries"]
        return Table(columns_of("queries", "queries"), [definition.row(around) for around in rows])


def _neighbours(side: str, nearest: List[Row]) -> Iterator[Row]:
    """The nodes of a tree, each with the events on the way to it."""
    open_lists: List[Iterator[Row]] = [iter(nearest)]
    events: List[str] = []
    while open_lists:
        node = next(open_lists[-1], None)
        if node is None:
            open_lists.pop()
            if events:
                events.pop()
        elif "others" not in node:
            event = node["event"]
            distance = len(open_lists)
            if event is not None:
                events.append(event)
                open_lists.append(iter(node.get("next", [])))
            yield {
                "side": side,
                "distance": distance,
                "event": event,
                "events": list(events),
                "count": node["count"],
            }


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
