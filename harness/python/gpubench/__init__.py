"""gpubench: benchmark and conformance suite for GPU training.

check() and assert_conformant() judge the results of an op in any test suite. @implements offers functions to
`gpubench --impl FILE.py`. cases() and run() call the program."""

from ._check import Verdict, assert_conformant, check
from ._implements import Call, Outputs, implements
from ._program import Case, Report, Result, RunError, cases, run

__all__ = [
    "Call",
    "Case",
    "Outputs",
    "Report",
    "Result",
    "RunError",
    "Verdict",
    "assert_conformant",
    "cases",
    "check",
    "implements",
    "run",
]
