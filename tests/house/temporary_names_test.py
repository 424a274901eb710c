#!/usr/bin/env python3
"""Temporary names are unpredictable: temporary_names_test.py SOURCE_DIR
In a shared folder, another user could take a predictable name first, as a link to a file that is then overwritten. So code
that uses such a folder must create its names with mkdtemp, mkostemp or mktemp(1), and must not use functions that only
generate a name.
"""
import re
import sys
import unittest
from pathlib import Path

root = Path(sys.argv[1])
folders = ("harness", "reference", "suites", "scripts")
made_up = re.compile(r"\b(tmpnam|tempnam|tmpnam_r|mktemp)\s*\(|\bmktemp\s+(-\w*u|--dry-run)|\btempfile\.mktemp\b")
shared = re.compile(r"temp_directory_path|\bP_tmpdir\b|\bTMPDIR\b|[\"'=\s:-]/(var/)?tmp\b|/dev/shm\b")
unpredictable = re.compile(r"\bmkdtemp\b|\bmkostemps?\b|\bmkstemps?\b|\bmktemp\s+(-d\b|-t\b|\"|$)|\bwrite_new_file\b|\$\(mktemp\b|\btempfile\.(mkdtemp|TemporaryDirectory|NamedTemporaryFile)\b")
process = re.compile(r"\bgetpid\s*\(|\$\$|\bos\.getpid\b")


def code_of(text, is_cpp):
    """The text without comments."""
    return "\n".join(line.split("//" if is_cpp else " #")[0] for line in text.splitlines() if is_cpp or not line.lstrip().startswith("#"))


def complaint(text, is_cpp):
    code = code_of(text, is_cpp)
    if found := made_up.search(code):
        return f"'{found.group(0)}' only generates a name"
    if (found := shared.search(code)) and not unpredictable.search(code):
        return f"'{found.group(0).strip()}' is a shared folder, and no name in it is created by mkdtemp, mkostemp or mktemp"
    for number, line in enumerate(code.splitlines(), 1):
        if shared.search(line) and process.search(line):
            return f"line {number} names a file in a shared folder after the process"
    return ""


class TemporaryNames(unittest.TestCase):
    def test_none_can_be_known_beforehand(self):
        seen = 0
        for folder in folders:
            for path in sorted((root / folder).rglob("*")):
                if not path.is_file() or path.suffix in (".md", ".svg", ".json"):
                    continue
                seen += 1
                with self.subTest(path=path.relative_to(root)):
                    self.assertEqual(complaint(path.read_text(errors="replace"), path.suffix in (".h", ".cpp", ".cu", ".cuh")), "")
        self.assertGreater(seen, 300)

    def test_the_check_sees_what_it_is_for(self):
        old = 'path_ = (std::filesystem::temp_directory_path() / fmt::format("gpubench-calibrate.{}", ::getpid())).string();'
        self.assertIn("temp_directory_path", complaint(old, True))
        self.assertIn("after the process", complaint("::mkdtemp(other);\n" + old, True))
        self.assertIn("shared folder", complaint("log=/tmp/gpubench.$$\n", False))
        self.assertIn("generates a name", complaint("char* name = ::tmpnam(nullptr);", True))
        self.assertIn("generates a name", complaint("name=$(mktemp -u)\n", False))
        self.assertEqual(complaint('std::string path = temp_directory_path() / "x.XXXXXX"; ::mkdtemp(path.data());', True), "")
        self.assertEqual(complaint('work=$(mktemp -d "${TMPDIR:-/tmp}/x.XXXXXX")\n', False), "")
        self.assertEqual(complaint("int x = 0;  // as /tmp is", True), "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
