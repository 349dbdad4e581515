"""Weighted parts of a trace, for machine learning."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
import numpy.typing as npt

from ._answer import Table, columns_of

Integers = npt.NDArray[np.integer[Any]]


class Segment(NamedTuple):
    """A sequence of events without a loop."""

    #: Its events by number; `labels` has their texts.
    symbols: Integers
    labels: List[str]
    #: The name of the stream of its first occurrence, and the position there.
    stream: str
    start: int
    length: int
    #: How many loops are around it.
    depth: int
    #: How often it occurs, and how many events that is.
    times: int
    weight: int


Predictor = Callable[[Segment], float]


class Segments:
    """Every distinct sequence of events without a loop."""

    def __init__(self, columns: Dict[str, Any]) -> None:
        self._columns = columns
        #: The text of each symbol.
        self.vocabulary: List[str] = columns["labels"]
        self.start: Integers = columns["start"]
        self.length: Integers = columns["length"]
        self.depth: Integers = columns["depth"]
        self.times: Integers = columns["times"]
        #: How many events each stands for.
        self.weight: Integers = columns["weight"]

    def __len__(self) -> int:
        return len(self.start)

    def symbols(self, index: int) -> Integers:
        """The events of a segment, as numbers in `vocabulary`."""
        first, end = self._columns["offsets"][index], self._columns["offsets"][index + 1]
        symbols: Integers = self._columns["symbols"][first:end]
        return symbols

    def __getitem__(self, index: int) -> Segment:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} segments")
        symbols = self.symbols(index)
        return Segment(
            symbols,
            [self.vocabulary[symbol] for symbol in symbols],
            self._columns["streams"][int(self._columns["stream"][index])],
            int(self.start[index]),
            int(self.length[index]),
            int(self.depth[index]),
            int(self.times[index]),
            int(self.weight[index]),
        )

    def __iter__(self) -> Iterator[Segment]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        events, written = int(self.weight.sum()), int(self.length.sum())
        return f"<loopfold.Segments: {len(self)} segments of {written:,} events, for {events:,}>"

    def table(self) -> Table:
        """One row for each segment."""
        rows = [{**segment._asdict(), "events": segment.labels} for segment in self]
        return Table(columns_of("segments", "segments"), rows)

    def predict(self, f: Predictor) -> float:
        """The sum of weight times prediction."""
        return float(sum(segment.weight * f(segment) for segment in self))

    def batches(
        self, size: int, seed: Optional[int] = None
    ) -> Iterator[Tuple[Integers, Integers, npt.NDArray[np.float64]]]:
        """Batches of segments: symbols, padded with -1 to the longest of the batch; lengths; weights as
        shares of the whole trace. In a random order if there is a seed.

        >>> segments = loopfold.fold("a b c b c b c d".split()).segments()
        >>> for symbols, lengths, weights in segments.batches(2):
        ...     print(symbols.tolist(), lengths.tolist(), weights.tolist())
        [[0, -1], [1, 2]] [1, 2] [0.125, 0.75]
        [[3]] [1] [0.125]
        """
        if size < 1:
            raise ValueError("a batch has at least one segment")
        order = np.arange(len(self))
        if seed is not None:
            np.random.default_rng(seed).shuffle(order)
        total = max(float(self.weight.sum()), 1.0)
        for first in range(0, len(order), size):
            chosen = order[first : first + size]
            lengths = self.length[chosen].astype(np.int64)
            symbols = np.full((len(chosen), int(lengths.max())), -1, dtype=np.int64)
            for row, index in enumerate(chosen):
                symbols[row, : lengths[row]] = self.symbols(int(index))
            yield symbols, lengths, self.weight[chosen] / total

    def dataset(self) -> Any:
        """A `torch.utils.data.Dataset` of (symbols, weight), where torch is installed."""
        return _dataset(len(self), lambda index: (self.symbols(index), float(self.weight[index])))


class Sample:
    """The first iterations of each loop of a trace."""

    def __init__(self, columns: Dict[str, Any]) -> None:
        self.vocabulary: List[str] = columns["labels"]
        self.streams: List[str] = columns["streams"]
        #: The events that are kept, as numbers in `vocabulary`.
        self.symbols: Integers = columns["symbols"]
        lengths = columns["length"].astype(np.int64)
        #: How many events each of them stands for.
        self.weights: Integers = np.repeat(columns["weight"], lengths)
        #: The position of each in its stream, and the number of that stream.
        first = np.repeat(columns["start"].astype(np.int64) - (np.cumsum(lengths) - lengths), lengths)
        self.positions: Integers = first + np.arange(len(first))
        self.stream: Integers = np.repeat(columns["stream"], lengths)

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def labels(self) -> List[str]:
        """The texts of the events."""
        return [self.vocabulary[symbol] for symbol in self.symbols]

    def __repr__(self) -> str:
        return f"<loopfold.Sample: {len(self):,} events for {int(self.weights.sum()):,}>"

    def windows(self, length: int) -> Tuple[Integers, npt.NDArray[np.float64]]:
        """For each event that is kept, the events up to it in the sample, at most `length`, with -1
        before the first; and the weights. What lies before an event in the sample lies before it in
        the trace as well, but for iterations that are left out.

        >>> sample = loopfold.fold([1, 2] * 10).sample(steady_state=2)
        >>> windows, weights = sample.windows(3)
        >>> windows.tolist()
        [[-1, -1, 0], [-1, 0, 1], [0, 1, 0], [1, 0, 1]]
        """
        if length < 1:
            raise ValueError("a window has at least one event")
        padded = np.concatenate([np.full(length - 1, -1, dtype=np.int64), self.symbols.astype(np.int64)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, length).copy()
        borders: List[int] = (np.flatnonzero(np.diff(self.stream)) + 1).tolist()
        for begin in borders:
            for offset in range(min(length - 1, len(self) - begin)):
                windows[begin + offset, : length - 1 - offset] = -1
        return windows, self.weights.astype(np.float64)

    def dataset(self, length: int) -> Any:
        """A `torch.utils.data.Dataset` of (window, weight), where torch is installed."""
        windows, weights = self.windows(length)
        return _dataset(len(windows), lambda index: (windows[index], float(weights[index])))


def _dataset(length: int, item: Callable[[int], Any]) -> Any:
    from torch.utils.data import Dataset

    class Weighted(Dataset):  # type: ignore[misc, type-arg, unused-ignore]
        def __len__(self) -> int:
            return length

        def __getitem__(self, index: int) -> Any:
            return item(index)

    return Weighted()
