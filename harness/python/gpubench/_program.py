"""The program in the package: the command `gpubench`, cases(), run() and what a run reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

FlagValue = Union[bool, int, float, str, os.PathLike, Sequence[Union[int, str, os.PathLike]]]

_PROGRAM = str(Path(__file__).with_name("bin") / "gpubench")


def _environment() -> dict[str, str]:
    """This process's, in which a virtual environment counts as activated: NVIDIA's libraries are looked for in its packages."""
    found = dict(os.environ)
    if sys.prefix != sys.base_prefix:
        found.setdefault("VIRTUAL_ENV", sys.prefix)
    return found


class RunError(RuntimeError):
    """The program could not do what was asked; `code` is its exit code, the text what it said."""

    def __init__(self, code: int, said: str):
        super().__init__(said.strip() or f"gpubench ended with {code}")
        self.code = code


def main() -> None:
    """The command `gpubench`: becomes the program, whose Python files run on this interpreter."""
    environment = _environment()
    if any(word == "impl" or word.startswith("--impl") for word in sys.argv):
        environment.setdefault("GPUBENCH_PYTHON", sys.executable)
    os.execve(_PROGRAM, [_PROGRAM, *sys.argv[1:]], environment)


def _words(flags: dict[str, FlagValue | None]) -> list[str]:
    """suite=["gemm", "norm"], dry_run=True -> --suite gemm,norm --dry-run"""
    words: list[str] = []
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            words += [flag, ",".join(str(one) for one in value)]
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


def _said(words: list[str]) -> str:
    done = subprocess.run(
        [_PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), text=True, check=False
    )
    if done.returncode != 0:
        raise RunError(done.returncode, done.stderr)
    return done.stdout


@dataclass(frozen=True)
class Case:
    """A case that there is: what `gpubench list` shows of it."""

    id: str
    suite: str
    workload: str
    recipe: str
    tier: str
    label: str
    flop: float
    bytes: float
    memory_bytes: int


def cases(**flags: FlagValue | None) -> list[Case]:
    """The cases that these flags select, named as `gpubench list`'s: cases(suite="gemm", tier="smoke", device="cpu")."""
    listed = json.loads(_said(["list", "--format", "json", *_words(flags)]))["cases"]
    return [Case(**{name: one[name] for name in Case.__dataclass_fields__}) for one in listed]


@dataclass(frozen=True)
class Result:
    """A case that was run, by one implementation."""

    id: str
    status: str
    """"pass", "fail", "downgraded", "not_proven", "unverified", "unsupported", "skipped" or "error"."""
    reason: str
    contender: str
    """The name of a file of --impl; empty where the device's own libraries ran it."""
    implementation: str
    error_over_bound: float | None
    median_ns: float | None
    """Of one run, where it was timed and passed; its 95% interval."""
    ci95_low_ns: float | None
    ci95_high_ns: float | None
    record: dict[str, Any] = field(repr=False)
    """All of the case in the report."""


def _result(record: dict[str, Any]) -> Result:
    summary, parity = record.get("summary") or {}, record.get("parity") or {}
    return Result(
        record["id"],
        record["status"],
        record.get("reason", ""),
        record.get("contender", ""),
        record.get("implementation", ""),
        parity.get("error_over_bound"),
        summary.get("median_ns"),
        summary.get("ci95_low_ns"),
        summary.get("ci95_high_ns"),
        record,
    )


@dataclass(frozen=True)
class Report:
    """What a run found; iterates over its results."""

    results: list[Result]
    code: int
    """The exit code: 0 where all that ran passed."""
    document: dict[str, Any] = field(repr=False)
    """The report as JSON has it (results/schema)."""

    @property
    def passed(self) -> bool:
        return self.code == 0

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def to_pandas(self) -> Any:
        """A frame with a row for each result. Raises ImportError where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise ImportError("Report.to_pandas() needs pandas: pip install pandas") from None
        columns = [name for name in Result.__dataclass_fields__ if name != "record"]
        return pandas.DataFrame([[getattr(one, name) for name in columns] for one in self.results], columns=columns)

    @staticmethod
    def read(file: str | os.PathLike[str], code: int = 0) -> Report:
        """Of a report.json that a run has written."""
        document = json.loads(Path(file).read_text(encoding="utf-8"))
        return Report([_result(one) for one in document["gpubench"]["cases"]], code, document)


def run(**flags: FlagValue | None) -> Report:
    """Runs cases, with the flags of `gpubench run`: run(suite="norm", tier="smoke", impl=["mine.py"], device="cpu").

    Verdicts are values: a failing case is in the report. Raises RunError where there is none (wrong flags, no device).
    """
    if flags.get("impl"):
        flags.setdefault("python", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "report.json")
        words = ["run", "--json", file, *_words(flags)]
        done = subprocess.run(
            [_PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_environment(), text=True, check=False
        )
        if not os.path.exists(file):
            raise RunError(done.returncode, done.stderr)
        return Report.read(file, done.returncode)
