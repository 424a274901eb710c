"""gpubench: conformance and speed of GPU training's operators.

check() and assert_conformant() judge tensors of anybody's test suite; @implements offers functions to `gpubench --impl
FILE.py`; cases() and run() are the program's."""

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
