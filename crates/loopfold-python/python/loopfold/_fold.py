"""Traces and folds, and the questions on them."""

from __future__ import annotations

import builtins
import json
import os
import tempfile
import warnings
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from . import _html, _native, _progress
from ._answer import Answer, Answers, Note
from ._segments import Predictor, Sample, Segments

PathLike = Union[str, "os.PathLike[str]"]
#: The value of an option: a flag, a number, a text, or several.
Option = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Union[str, int]]]

# What takes the place of a path for a fold in memory.
_MEMORY = "<memory>"
# The characters of a line of text, as where there is no terminal.
_WIDTH = 80


def _options(options: Dict[str, Option]) -> List[str]:
    """Options as arguments of the command."""
    arguments: List[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
        elif isinstance(value, (list, tuple)):
            arguments += [f"{option}={item}" for item in value]
        else:
            arguments.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return arguments


def _note(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, Note, stacklevel=4)


def _json_lines(output: bytes) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line]


class Fold:
    """A trace that can be asked: made by `open()`, `fold()`, `Recorder` or `trace()`.

    Threads may ask one fold at the same time. Answers have the defaults of the command.
    """

    def __init__(self, native: _native.Native, inputs: List[str], reading: Dict[str, Option]) -> None:
        self._native = native
        self._inputs = inputs
        self._reading = reading
        self._keeps: Any = None
        self._repr: Optional[str] = None

    # How questions are asked

    def _arguments(self, command: str, options: Dict[str, Option], more: Sequence[str] = ()) -> List[str]:
        asked = {**self._reading, **options}
        return [command, *_options(asked), "--", *self._inputs, *more]

    def _output(self, command: str, options: Dict[str, Option], more: Sequence[str] = ()) -> Any:
        return self._native.ask(self._arguments(command, options, more), _WIDTH, _progress.report())

    def _ask(
        self, command: str, options: Dict[str, Option], more: Sequence[str] = (), kind: Optional[str] = None
    ) -> Answer:
        output, notes, found = self._output(command, {**options, "json": True}, more)
        _note(notes)
        answers = _json_lines(output)
        return Answer(kind or command, answers[0] if answers else {}, found)

    def text(self, command: str = "loops", *more: str, **options: Option) -> str:
        """What the command prints to be read.

        >>> print(loopfold.fold("abcabcabc").text("loops"))
        Traceback (most recent call last):
        TypeError: a str is one event; fold(list(text)) folds its characters, text.split() its words, and open(path) a file
        >>> print(loopfold.fold(list("abcabcabc")).text("loops"))
        main · 3 × (3 events), 100 % of the events
        9 events written as 3 · 3.0 times fewer · 100 % in loops
          (abc)^3  3 events each · 100 % of the events
        <BLANKLINE>
        """
        output, notes, _ = self._output(command, options, more)
        _note(notes)
        return str(output.decode("utf-8", "replace"))

    # Questions

    def loops(self, **options: Option) -> Answer:
        """The loop nest of each class of streams (`exact=`, `align=`, `patterns=`, `logical=` …)."""
        return self._ask("loops", options)

    def iterations(self, loop: Union[None, int, str] = None, **options: Option) -> Answer:
        """Every iteration of a loop: of the main one, or by its number or an event in it.

        `slow=3` explains the three slowest.
        """
        return self._ask("iterations", {"within": loop, **options})

    def hot(self, **options: Option) -> Answer:
        """The most expensive event sequences (`min_length=`, `min_cost=`, `cost=`, `top=` …)."""
        return self._ask("hot", options)

    def stats(self, **options: Option) -> Answer:
        """Sizes, counts, and the most frequent and most costly events."""
        return self._ask("stats", options)

    def streams(self, **options: Option) -> Answer:
        """All streams with their numbers, for `stream=`."""
        return self._ask("stats", {"streams": True, **options}, kind="streams")

    def find(self, query: str, **options: Option) -> Answer:
        """How often a sequence of events or a path of a function occurs, and where.

        >>> fold = loopfold.fold("a b a b c".split())
        >>> fold.find("a b", all=True).table().column("start")
        [0, 2]
        >>> fold.find("c", before="a")["before_count"]
        0
        """
        return self._ask("find", options, [query])

    def find_many(self, queries: Sequence[str], **options: Option) -> Answers:
        """The answers to many queries, in their order."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "queries")
            with builtins.open(path, "w", encoding="utf-8") as file:
                file.writelines(query.replace("\n", " ") + "\n" for query in queries)
            output, notes, found = self._output("find", {**options, "queries": path, "json": True})
        _note(notes)
        return Answers(Answer("find", answer, found) for answer in _json_lines(output))

    def context(self, event: str, **options: Option) -> Answer:
        """The events before and after an event, with counts."""
        return self._ask("context", options, [event])

    def similar(self, pattern: Optional[str] = None, **options: Option) -> Answer:
        """Event sequences within an edit distance of a pattern."""
        if "pattern_file" in options:
            options["pattern"] = options.pop("pattern_file")
        return self._ask("similar", options, [] if pattern is None else [pattern])

    def patterns(self, **options: Option) -> Answer:
        """Event sequences that occur repeatedly, and communication patterns."""
        return self._ask("patterns", options)

    def waits(self, **options: Option) -> Answer:
        """Who waits for whom in traces of messages, where and how long."""
        return self._ask("waits", options)

    def skeleton(self, output: PathLike, **options: Option) -> Answer:
        """Writes a short MPI program that communicates as the recorded one does."""
        return self._ask("skeleton", {"output": output, **options})

    def window(
        self, start: Union[None, int, str] = None, stop: Union[None, int, str] = None, **options: Option
    ) -> Answer:
        """The events from a position or time to before another, as labels.

        >>> loopfold.fold(list("abcabc")).window(1, 4)["streams"][0]["events"]
        ['b', 'c', 'a']
        """
        return self._ask("cat", {"from": start, "to": stop, **options})

    def expand(
        self,
        stream: Union[None, int, str] = None,
        *,
        start: Union[None, int, str] = None,
        stop: Union[None, int, str] = None,
        dtype: Optional[str] = None,
        out: Any = None,
        **options: Option,
    ) -> Any:
        """The events of a stream: an array of the integers it was made of, with the type they had, or
        a list of texts. `out` is a contiguous array to write to.

        >>> import numpy
        >>> loopfold.fold(numpy.array([7, 300, 7, 300], "uint16")).expand()
        array([  7, 300,   7, 300], dtype=uint16)
        >>> loopfold.fold(["a", "b", "a"]).expand()
        ['a', 'b', 'a']
        """
        asked = {"stream": stream, "from": start, "to": stop, **options}
        is_whole = self._inputs == [_MEMORY] and not any(value is not None for value in asked.values())
        arguments = None if is_whole else self._arguments("cat", asked)
        return self._native.expand(arguments, dtype, out, _progress.report())

    # Machine learning

    def segments(self, **options: Option) -> Segments:
        """Every distinct sequence of events without a loop, once, with its weight: the number of
        events it stands for. The weights sum up to the length of the trace.

        >>> segments = loopfold.fold("init read add write read add write done".split()).segments()
        >>> [(list(it.labels), it.start, it.times, it.weight) for it in segments]
        [(['init'], 0, 1, 1), (['read', 'add', 'write'], 1, 2, 6), (['done'], 7, 1, 1)]
        """
        return Segments(self._native.segments(self._arguments("loops", options), _progress.report()))

    def sample(self, steady_state: int, **options: Option) -> Sample:
        """The first iterations of each loop; the last one of them has the weight of those that are
        left out, since an architecture settles after a few.

        >>> sample = loopfold.fold([1, 2] * 100).sample(steady_state=2)
        >>> sample.labels, sample.weights.tolist()
        (['1', '2', '1', '2'], [1, 1, 99, 99])
        """
        if steady_state < 1:
            raise ValueError("steady_state is the number of iterations to keep, at least 1")
        arguments = self._arguments("loops", options)
        return Sample(self._native.sample(arguments, steady_state, _progress.report()))

    def predict(self, f: Predictor, **options: Option) -> float:
        """The sum over the trace of what `f` predicts for an event of a segment: of each distinct
        segment once, times its weight.

        >>> fold = loopfold.fold(["load", "add"] * 1000)
        >>> fold.predict(lambda segment: 2.5 if "load" in segment.labels else 1.0)
        5000.0
        """
        return self.segments(**options).predict(f)

    # Files

    def save(self, path: PathLike, **options: Option) -> Answer:
        """Writes an archive that contains every event (`times=`, `folder=`, `smallest=`, `chunks=` …)."""
        return self._ask("fold", {"output": path, **options})

    def export(self, to: str, path: Optional[PathLike] = None, **options: Option) -> Optional[str]:
        """Writes the rules in another form, or returns them as text if there is no path."""
        output, notes, _ = self._output("export", {"to": to, "output": path, **options})
        _note(notes)
        return None if path is not None else str(output.decode("utf-8"))

    def close(self) -> None:
        """Forgets what was read; every later question is an error."""
        self._native.close()
        self._keeps = None

    def __enter__(self) -> "Fold":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # How it looks

    @property
    def name(self) -> str:
        """The names of the inputs."""
        return ", ".join(os.path.basename(os.path.normpath(path)) for path in self._inputs)

    def __repr__(self) -> str:
        if self._native.is_closed:
            return f"<loopfold.Fold of {self.name}, closed>"
        if self._repr is None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", Note)
                    lines = self.text("loops", top=3).splitlines()
            except _native.Error as error:
                return f"<loopfold.Fold of {self.name}: {error}>"
            rest = len(lines) - 20
            self._repr = "\n".join(lines[:20] + ([f"… and {rest} more lines"] if rest > 0 else []))
        return self._repr

    def _repr_html_(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Note)
            return _html.tree(self.loops())


def open(*paths: PathLike, **options: Option) -> Fold:
    """Opens traces or archives of any format that the command reads.

    The options are those of reading: `format=`, `stream=`, `key=`, `calls=`, `lenient=` … A question
    can have others, which add to these. Traces are read when they are first asked, and kept.

    >>> lu = loopfold.open("examples/lu.txt.zst")
    >>> lu.stats()["events"]
    323048
    >>> lu
    lu.txt.zst · 249 × (1,292 events), 99.59 % of the events
    323,048 events written as 69 · 4,682 times fewer · 99.99 % in loops
      (V)^3 (W)^2 X (W)^3 (QJYQHYQEYQCY)^2 RU
      ((NKID)^160 (MLGB)^160 QJYQHYQEYQCY)^249
          1,292 events each · 99.59 % of the events
      (NKID)^160 (MLGB)^160 RQJYQHYQEYQCYRSRPYAOYF (T)^3
    """
    if not paths:
        raise TypeError("open() needs the path of a trace or an archive")
    names = [os.fspath(path) for path in paths]
    if "-" in names:
        raise ValueError("standard input cannot be read again; write it to a file, or fold(sys.stdin)")
    for name in names:
        if not os.path.exists(name):
            raise FileNotFoundError(2, "No such file or directory", name)
    return Fold(_native.Native(), names, dict(options))


def fold(
    events: Iterable[Any], *, folder: str = "auto", name: str = "main", threads: Optional[int] = None
) -> Fold:
    """Folds events: a list or another iterable of integers, `str` or `bytes`, an array of integers of
    numpy, or a column of pandas, polars or Arrow. Arrays and columns are not copied.

    A negative integer is the event with that name, such as `'-1'`.

    >>> import numpy
    >>> loopfold.fold(numpy.arange(6) % 2)
    main · 3 × (2 events), 100 % of the events
    6 events written as 2 · 3.0 times fewer · 100 % in loops
      (01)^3  2 events each · 100 % of the events
    """
    is_arrow = hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__")
    if not is_arrow and hasattr(events, "to_numpy"):
        # A column of pandas before 3.0.
        events = getattr(events, "to_numpy")()
    native = _native.fold_events(events, folder, name, threads, _progress.report())
    return Fold(native, [_MEMORY], {})


def _once(arguments: List[str]) -> Answer:
    output, notes, found = _native.Native().ask(arguments, _WIDTH, _progress.report())
    _note(notes)
    return Answer(arguments[0], _json_lines(output)[0], found)


def merge(paths: Sequence[PathLike], output: PathLike, **options: Option) -> Answer:
    """Joins archives and traces into one archive."""
    asked = _options({"output": output, "json": True, **options})
    return _once(["merge", *asked, "--", *[os.fspath(path) for path in paths]])


def verify(*paths: PathLike, **options: Option) -> Answer:
    """Checks archives from end to end; `found` is False if one is damaged."""
    return _once(["verify", *_options({"json": True, **options}), "--", *[os.fspath(path) for path in paths]])
