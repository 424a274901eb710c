"""The pytest fixture `gpubench_check`; pytest loads it by its entry point."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ._check import Verdict, assert_conformant


@pytest.fixture
def gpubench_check(record_property: Callable[[str, object], None]) -> Callable[..., Verdict]:
    """gpubench.assert_conformant(), and records error / bound in JUnit reports."""

    def checked(op: str, inputs: object, outputs: object, **options: object) -> Verdict:
        verdict = assert_conformant(op, inputs, outputs, **options)  # type: ignore[arg-type]
        record_property("gpubench_error_over_bound", f"{op}: {verdict.error_over_bound:.3g}")
        return verdict

    return checked
