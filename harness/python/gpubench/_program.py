"""The program in the package: the command `gpubench`, cases(), run() and Report."""

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
    """os.environ with VIRTUAL_ENV set inside a virtual environment: gpubench looks there for NVIDIA's libraries."""
    found = dict(os.environ)
    if sys.prefix != sys.base_prefix:
        found.setdefault("VIRTUAL_ENV", sys.prefix)
    return found


class RunError(RuntimeError):
    """A run without a report; `code` is the exit code, the text is the program's error output."""

    def __init__(self, code: int, said: str):
        super().__init__(said.strip() or f"gpubench exited with code {code}")
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
    """A case as `gpubench list` shows it."""

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
    """The cases that the flags of `gpubench list` select: cases(suite="gemm", tier="smoke", device="cpu")."""
    listed = json.loads(_said(["list", "--format", "json", *_words(flags)]))["cases"]
    return [Case(**{name: one[name] for name in Case.__dataclass_fields__}) for one in listed]


@dataclass(frozen=True)
class Result:
    """The result of a case for one implementation."""

    id: str
    status: str
    """"pass", "fail", "downgraded", "not_proven", "unverified", "unsupported", "skipped" or "error"."""
    reason: str
    contender: str
    """The name of a file of --impl; empty for the device's own libraries."""
    implementation: str
    error_over_bound: float | None
    median_ns: float | None
    """Median of one run and its 95% interval; None unless the case was timed and passed."""
    ci95_low_ns: float | None
    ci95_high_ns: float | None
    record: dict[str, Any] = field(repr=False)
    """The case as in the report."""


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
    """The results of a run; iterates over them."""

    results: list[Result]
    code: int
    """The exit code; 0: everything that ran passed."""
    document: dict[str, Any] = field(repr=False)
    """The JSON report (results/schema)."""

    @property
    def passed(self) -> bool:
        return self.code == 0

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def to_pandas(self) -> Any:
        """A data frame with a row per result. Raises ImportError if pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise ImportError("Report.to_pandas() needs pandas: pip install pandas") from None
        columns = [name for name in Result.__dataclass_fields__ if name != "record"]
        return pandas.DataFrame([[getattr(one, name) for name in columns] for one in self.results], columns=columns)

    @staticmethod
    def read(file: str | os.PathLike[str], code: int = 0) -> Report:
        """The report in a report.json."""
        document = json.loads(Path(file).read_text(encoding="utf-8"))
        return Report([_result(one) for one in document["gpubench"]["cases"]], code, document)


def run(**flags: FlagValue | None) -> Report:
    """Runs cases with the flags of `gpubench run`: run(suite="norm", tier="smoke", impl=["mine.py"], device="cpu").

    A failing case is a result in the report, not an exception. Raises RunError if there is no report (wrong flags, no
    device).
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
