#!/usr/bin/env python3
"""Every part of the tree keeps within its lines in budget.txt: budget_test.py SOURCE_DIR"""
import sys
import unittest
from pathlib import Path

source = Path(sys.argv[1])
endings = {".cpp", ".h", ".cu", ".cuh", ".c", ".py"}
slack = 0.02  # plus 50 lines; rows further above their part would hide growth


def files_of(part):
    return [path for path in (source / part).rglob("*") if path.suffix in endings and path.is_file()]


def size_of(part):
    if part == "headers":
        folders = ("harness", "reference", "suites", "tests")
        return sum(path.suffix == ".h" for folder in folders for path in files_of(folder))
    return sum(path.read_bytes().count(b"\n") for path in files_of(part))


def budget():
    lines = (source / "tests/house/budget.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {part: int(most) for part, most in rows}


class Budget(unittest.TestCase):
    def test_every_part_keeps_within_its_row(self):
        for part, most in budget().items():
            with self.subTest(part=part):
                size = size_of(part)
                print(f"{part:20} {size:6} of {most:6}, room for {most - size}")
                self.assertLessEqual(size, most, f"{part} grew; remove lines, or raise its row as budget.txt says")
                self.assertGreaterEqual(size, (1 - slack) * most - 50, f"{part} shrank; lower its row to {size}")

    def test_every_part_of_the_harness_has_a_row(self):
        parts = {f"harness/{path.name}" for path in (source / "harness").iterdir() if path.is_dir()}
        self.assertEqual(parts - budget().keys(), set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
