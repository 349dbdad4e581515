"""Folds the repetition in execution traces, and answers questions on them.

>>> import loopfold
>>> fold = loopfold.fold(["init"] + ["read", "write"] * 3 + ["close"])
>>> fold.loops()["classes"][0]["nest"]
['init', {'times': 3, 'body': ['read', 'write']}, 'close']
>>> fold.find("write read")["count"]
2

Every question of the command `loopfold` is a method, with the same options: `--min-length 4` is
`min_length=4`, a flag is `True`, and `--from` is `from_`. An answer is what `--json` prints, as a
dictionary.
"""

from ._answer import Answer, Answers, Note, Table
from ._fold import Fold, fold, merge, open, verify
from ._native import VERSION as __version__
from ._native import Error
from ._profiler import TraceHandler
from ._recorder import Recorder
from ._segments import Sample, Segment, Segments
from ._trace import trace

__all__ = [
    "Answer",
    "Answers",
    "Error",
    "Fold",
    "Note",
    "Recorder",
    "Sample",
    "Segment",
    "Segments",
    "Table",
    "TraceHandler",
    "__version__",
    "fold",
    "merge",
    "open",
    "trace",
    "verify",
]
