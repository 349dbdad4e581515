"""What all tests of the package have."""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests use the traces that ship with the repository."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="session")
def command() -> str:
    """The command, to compare with."""
    path = os.environ.get("LOOPFOLD_COMMAND") or shutil.which("loopfold")
    assert path, "LOOPFOLD_COMMAND must name the command"
    return path
