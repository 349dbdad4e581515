"""Every question of the command, asked in Python: the same answers."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any, Callable, Dict, Iterator, List, Tuple

import loopfold
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::loopfold.Note")

Ask = Callable[[loopfold.Fold], Any]
QUESTIONS: Dict[str, Tuple[List[str], Ask]] = {
    "loops": (["loops"], lambda fold: fold.loops()),
    "exact loops": (["loops", "--exact"], lambda fold: fold.loops(exact=True)),
    "aligned loops": (["loops", "--align", "gap"], lambda fold: fold.loops(align="gap")),
    "folded by repair": (["loops", "--folder", "repair"], lambda fold: fold.loops(folder="repair")),
    "loops of a part": (["loops", "--from", "10", "--to", "90"], lambda fold: fold.loops(from_=10, to=90)),
    "iterations": (["iterations"], lambda fold: fold.iterations()),
    "one loop": (["iterations", "--within", "1"], lambda fold: fold.iterations(1)),
    "slow iterations": (["iterations", "--slow", "2"], lambda fold: fold.iterations(slow=2)),
    "stats": (["stats"], lambda fold: fold.stats()),
    "streams": (["stats", "--streams"], lambda fold: fold.streams()),
    "hot": (["hot", "--min-length", "3"], lambda fold: fold.hot(min_length=3)),
    "hot by time": (["hot", "--cost", "duration"], lambda fold: fold.hot(cost="duration")),
    "window": (["cat", "--from", "3", "--to", "20"], lambda fold: fold.window(3, 20)),
    "with times": (["cat", "--to", "20", "--times"], lambda fold: fold.window(stop=20, times=True)),
    "patterns": (["patterns"], lambda fold: fold.patterns()),
    "exact patterns": (["patterns", "--method", "exact"], lambda fold: fold.patterns(method="exact")),
    "waits": (["waits"], lambda fold: fold.waits()),
    "logical": (["loops", "--logical"], lambda fold: fold.loops(logical=True)),
    "without an event": (["stats", "--drop", "Y"], lambda fold: fold.stats(drop="Y")),
}
# These end with a query.
QUERIES: Dict[str, Tuple[List[str], Callable[[loopfold.Fold, str], Any]]] = {
    "find": (["find"], lambda fold, query: fold.find(query)),
    "all places": (["find", "--all", "--top", "5"], lambda fold, query: fold.find(query, all=True, top=5)),
    "per stream": (["find", "--per-stream"], lambda fold, query: fold.find(query, per_stream=True)),
    "the second": (["find", "--nth", "2"], lambda fold, query: fold.find(query, nth=2)),
    "context": (["context", "--depth", "2"], lambda fold, query: fold.context(query, depth=2)),
    "similar": (["similar", "--edits", "1"], lambda fold, query: fold.similar(query, edits=1)),
}

CHROME = [
    {"name": name, "ph": "X", "pid": 1, "tid": tid, "ts": 100 * step + 10 * place, "dur": 8 + step % 3}
    for tid in (1, 2)
    for step in range(40)
    for place, name in enumerate(["load", "compute", "compute", "store"])
]
CALLS = "call main\n" + "call f\nblock 1\nblock 2\ncall g\nreturn\nreturn\n" * 30 + "return\n"
LOG = "".join(f"2024-01-01 12:00:{n % 60:02} request {n} took {n * 7 % 13} ms\n" for n in range(300))


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory, command: str) -> Dict[str, Tuple[str, str]]:
    """Paths of traces, each with a query."""
    folder = tmp_path_factory.mktemp("traces")
    (folder / "profile.json").write_text(json.dumps({"traceEvents": CHROME}))
    (folder / "program.calls").write_text(CALLS)
    (folder / "server.log").write_text(LOG)
    (folder / "numbers.u32").write_bytes(b"".join((n % 5).to_bytes(4, "little") for n in range(500)))
    (folder / "empty.txt").write_text("")
    root = pathlib.Path(__file__).resolve().parents[3]
    lu = str(root / "examples" / "lu.txt.zst")
    archive = str(folder / "lu.fold")
    subprocess.run([command, "fold", lu, "-o", archive], check=True, capture_output=True)
    return {
        "lu": (lu, "N K I"),
        "lu archive": (archive, "N K I"),
        "mpi": (str(root / "examples" / "lu-4x4.fold"), "MPI_Recv MPI_Send"),
        "chrome": (str(folder / "profile.json"), "load compute"),
        "calls": (str(folder / "program.calls"), "f: 1 2"),
        "log": (str(folder / "server.log"), "x"),
        "integers": (str(folder / "numbers.u32"), "1 2"),
        "empty": (str(folder / "empty.txt"), "x"),
    }


def more_traces() -> Iterator[str]:
    """Further traces to compare with, by a list of paths in the environment."""
    return (path for path in os.environ.get("LOOPFOLD_TRACES", "").split(os.pathsep) if path)


def without_durations(answer: Any) -> Any:
    """Without how long the search itself took."""
    if isinstance(answer, dict):
        return {
            key: without_durations(value) for key, value in answer.items() if key not in ("open_ns", "search_ns")
        }
    return [without_durations(value) for value in answer] if isinstance(answer, list) else answer


def compare(command: str, arguments: List[str], path: str, query: List[str], ask: Callable[[], Any]) -> None:
    done = subprocess.run([command, *arguments, "--json", "--", path, *query], capture_output=True)
    if done.returncode == 2:
        with pytest.raises((loopfold.Error, ValueError)) as raised:
            ask()
        text = done.stderr.decode()
        first = str(raised.value).split(";")[0].split("\n")[0]
        assert first in text.replace("\n       ", "\n"), (first, text)
        return
    answer = ask()
    # Where there is no loop, `iterations` prints only a note.
    expected = json.loads(done.stdout) if done.stdout else {}
    assert without_durations(answer) == without_durations(expected)
    assert answer.found == (done.returncode == 0)
    for name in answer.tables:
        if answer.command != "find" or name in answer:
            assert len(answer.table(name)) >= 0


TRACES = ["lu", "lu archive", "mpi", "chrome", "calls", "log", "integers", "empty"]


@pytest.mark.parametrize("trace", TRACES)
def test_answers_equal_those_of_the_command(
    trace: str, traces: Dict[str, Tuple[str, str]], command: str
) -> None:
    path, query = traces[trace]
    check_all(command, path, query)


def check_all(command: str, path: str, query: str) -> None:
    fold = loopfold.open(path)
    for arguments, ask in QUESTIONS.values():
        compare(command, arguments, path, [], lambda ask=ask: ask(fold))  # type: ignore[misc]
    for arguments, ask_query in QUERIES.values():
        compare(command, arguments, path, [query], lambda ask=ask_query: ask(fold, query))  # type: ignore[misc]


def test_answers_on_further_traces(command: str) -> None:
    for path in more_traces():
        counts = loopfold.open(path).stats()["counts"]
        check_all(command, path, f'"{counts[0]["event"]}"' if counts else "x")


def test_a_fold_in_memory_answers_as_its_archive(
    traces: Dict[str, Tuple[str, str]], command: str, tmp_path: pathlib.Path
) -> None:
    fold = loopfold.fold(loopfold.open(traces["lu"][0]).expand())
    path = str(tmp_path / "memory.fold")
    saved = fold.save(path)
    assert saved["events"] == 323_048
    for arguments, ask in QUESTIONS.values():
        # The archive has a size, which a fold in memory has not.
        if arguments[0] != "stats":
            compare(command, arguments, path, [], lambda ask=ask: ask(fold))  # type: ignore[misc]
    for arguments, ask_query in QUERIES.values():
        compare(command, arguments, path, ["N K I"], lambda ask=ask_query: ask(fold, "N K I"))  # type: ignore[misc]


def test_options_of_reading(traces: Dict[str, Tuple[str, str]], command: str) -> None:
    path = traces["chrome"][0]
    compare(command, ["loops", "--calls"], path, [], lambda: loopfold.open(path, calls=True).loops())
    streams = loopfold.open(path).streams()["stream_list"]
    compare(
        command, ["loops", "--stream", "1"], path, [], lambda: loopfold.open(path, stream=1).loops()
    )
    assert len(streams) == 2
    fold = loopfold.open(path)
    compare(command, ["stats", "--only", "load"], path, [], lambda: fold.stats(only=["load"]))
    assert fold.stats()["events"] == 320
    assert fold.expand(stream=0)[:2] == ["load", "compute"]
    with pytest.raises(ValueError, match="there are 2 streams; choose one with stream="):
        fold.expand()


def test_many_queries(traces: Dict[str, Tuple[str, str]]) -> None:
    fold = loopfold.open(traces["lu"][0])
    answers = fold.find_many(["N K", "Y", "nothing"])
    assert [answer["count"] for answer in answers] == [40_000, 1_010, 0]


def test_what_is_read_is_kept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("a\nb\n" * 10)
    fold = loopfold.open(path)
    assert fold.find("a")["count"] == 10
    assert fold.find("b")["count"] == 10
    path.write_text("a\n")
    assert fold.find("a")["count"] == 1


def test_errors_have_the_text_of_the_command(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        loopfold.open("no/such/file")
    with pytest.raises(ValueError, match="standard input"):
        loopfold.open("-")
    fold = loopfold.fold([1, 2])
    with pytest.raises(ValueError, match="invalid value 'many' for min_length"):
        fold.hot(min_length="many")
    with pytest.raises(ValueError, match="unexpected argument"):
        fold.hot(no_such_option=1)
    with pytest.raises(loopfold.Error, match="the window ends before it begins"):
        fold.window(5, 3)
    with pytest.raises(loopfold.Error, match="does not exist"):
        fold.save(tmp_path / "no" / "x.fold")
    (tmp_path / "x.fold").write_bytes(b"")
    fold.save(tmp_path / "x.fold")
    damaged = bytearray((tmp_path / "x.fold").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "y.fold").write_bytes(damaged)
    with pytest.raises(loopfold.Error):
        loopfold.open(tmp_path / "y.fold").stats()
    assert not loopfold.verify(tmp_path / "y.fold").found
    assert loopfold.verify(tmp_path / "x.fold").found


def test_notes_are_warnings() -> None:
    with pytest.warns(loopfold.Note, match="reed"):
        assert loopfold.fold(["read", "write"]).find("reed")["count"] == 0


def test_other_forms(tmp_path: pathlib.Path) -> None:
    fold = loopfold.fold(["a", "b", "a", "b"])
    grammar = fold.export("grammar")
    assert grammar is not None
    (tmp_path / "x.grammar").write_text(grammar)
    assert loopfold.open(tmp_path / "x.grammar").expand() == ["a", "b", "a", "b"]
    fold.export("dot", tmp_path / "x.dot")
    assert "digraph" in (tmp_path / "x.dot").read_text()
    fold.save(tmp_path / "a.fold")
    merged = loopfold.merge([tmp_path / "a.fold", tmp_path / "a.fold"], tmp_path / "b.fold")
    assert merged["events"] == 8
