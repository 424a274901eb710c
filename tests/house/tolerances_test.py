#!/usr/bin/env python3
"""Every number that decides a verdict has a comment with its reason: tolerances_test.py SOURCE_DIR
In the check and the textbooks, a literal with a negative exponent, a numeric constant, and anything named a tolerance needs a
comment on its line or right above; adjacent constants may share one.
"""
import re
import sys
import unittest
from pathlib import Path

root = Path(sys.argv[1])
folders = ("harness/parity", "reference/ops")
small = re.compile(r"\b\d[\d.']*e-\d+|\b0x1(\.\w+)?p-\d+", re.IGNORECASE)
constant = re.compile(r"\bconstexpr double (\w+) = [^;]*\d")
tolerance = re.compile(r"\b(\w*_)?(tolerance|slack|atol|rtol)\w*\b")
work = re.compile(r"\w*_flop$")  # decides how many elements are judged, not how
attribute = re.compile(r"^\s*double (epsilon|momentum|beta\d|weight_decay) = ")  # a default is part of an op's definition
document = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
string = re.compile(r'"(?:[^"\\]|\\.)*"')


def is_explained(lines, at):
    if "//" in lines[at]:
        return True
    above = at - 1
    while above >= 0 and "//" not in lines[above] and constant.search(lines[above]):
        above -= 1
    return above >= 0 and lines[above].lstrip().startswith("//")


def unexplained(text):
    """Line numbers of numbers without a reason, from 1."""
    lines = string.sub('""', document.sub(lambda found: "\n" * found.group(0).count("\n"), text)).splitlines()
    found = []
    for at, line in enumerate(lines):
        code = line.split("//")[0]
        named = constant.search(code)
        judges = small.search(code) or tolerance.search(code) or (named and not work.match(named.group(1)))
        if judges and not attribute.match(code) and not is_explained(lines, at):
            found.append(at + 1)
    return found


class Tolerances(unittest.TestCase):
    def test_each_has_its_reason_beside_it(self):
        seen = 0
        for folder in folders:
            for path in sorted((root / folder).rglob("*")):
                if path.suffix not in (".h", ".cpp"):
                    continue
                seen += 1
                text = path.read_text()
                for number in unexplained(text):
                    with self.subTest(path=path.relative_to(root), line=number):
                        self.fail(text.splitlines()[number - 1].strip() + ": needs a comment with its reason")
        self.assertGreater(seen, 60)

    def test_the_check_sees_what_it_is_for(self):
        for bad in ("if (error < 1e-5) return;", "constexpr double limit = 3.0;", "x = 0x1p-20 * y;", "const double slack = f();"):
            self.assertEqual(unexplained(bad), [1], bad)
        self.assertEqual(unexplained("// Something else.\nint x = 0;\nif (error < 1e-5) return;"), [3])
        for good in ("// Of exp: three ulps.\nconstexpr double limit = 3.0;\nconstexpr double other = 4.0;", "x = 0x1p-20 * y;  // half an ulp",
                     'text = "1e-5";', "  double epsilon = 1e-5;", "constexpr double sample_flop = 2e6;", "x = 2.0 * u;",
                     'constexpr auto doc = R"(\nabout 1e-5)";'):
            self.assertEqual(unexplained(good), [], good)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
