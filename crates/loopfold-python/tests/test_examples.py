"""The examples in the documentation are executed."""

from __future__ import annotations

import doctest
import importlib
import pathlib
import pkgutil

import loopfold
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULES = [
    name for _, name, _ in pkgutil.iter_modules(loopfold.__path__, "loopfold.") if "__main__" not in name
]


@pytest.mark.parametrize("name", ["loopfold", *MODULES])
def test_of_modules(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs={"loopfold": loopfold})
    assert failed == 0


def test_of_the_guide(tmp_path: pathlib.Path) -> None:
    guide = ROOT / "docs" / "python.md"
    # Examples end where their fence does.
    text = guide.read_text(encoding="utf-8").replace("```pycon", "").replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {"tmp": tmp_path}, "python.md", str(guide), 0)
    assert len(example.examples) > 20
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert outcome.failed == 0


def test_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    exec(compile(code, "README.md", "exec"), {})
