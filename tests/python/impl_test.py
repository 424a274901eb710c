"""Python functions as implementations under test, in whole runs: impl_test.py [TEST ...]"""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import gpubench

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

NORM = "norm/rms_norm_forward/rows=64,n=512/"


def run(source, **flags):
    """The results of `source` as a file of --impl."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mine.py"
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        flags = {"filter": NORM + "f32", "tier": "smoke", "device": "cpu", "deadline": 60, **flags}
        return gpubench.run(impl=[file], **flags)


NUMPY_NORM = """
    import numpy as np
    import gpubench

    __version__ = "1.5 (test)"

    @gpubench.implements("rms_norm_forward", tensors="numpy", types=("f32",))
    def own_norm(x, gamma, epsilon{parameters}):
        rstd = 1 / np.sqrt((x.astype("f8") ** 2).mean(-1) + epsilon)
        y = x * rstd[:, None] * gamma
        {result}
"""


@unittest.skipIf(numpy is None, "NumPy is not installed")
class NumPyFunctions(unittest.TestCase):
    def test_one_that_writes_its_outputs_passes_under_its_name(self):
        report = run(NUMPY_NORM.format(parameters=", out", result="out.y[...], out['rstd'][...] = y, rstd"))
        (result,) = report
        self.assertTrue(report.passed, result.reason)
        self.assertEqual((result.status, result.contender, result.implementation), ("pass", "mine", "impl:mine/own_norm"))
        self.assertGreater(result.median_ns, 0)
        (file,) = report.document["context"]["gpubench"]["implementations"]
        self.assertEqual((file["name"], file["version"]), ("mine", "1.5 (test)"))

    def test_one_that_returns_them_says_that_they_are_copied(self):
        (result,) = run(NUMPY_NORM.format(parameters="", result="return y, rstd"))
        self.assertEqual((result.status, result.implementation), ("pass", "impl:mine/own_norm+copy"))

    def test_an_operand_that_a_call_lacks_is_none_though_a_switch_has_its_name(self):
        source = """
            import gpubench
            import numpy as np

            @gpubench.implements("gemm", tensors="numpy", types=("f32",), when=lambda call: not call.attributes["bias"])
            def own_gemm(a, b, bias, *, transpose_a, transpose_b, out, pre=None, **rest):
                if bias is not None or pre is not None:
                    raise ValueError(f"bias is {bias}, pre is {pre}")
                np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out.c)
        """
        (result,) = run(source, filter="gemm/linear_forward/m=256,n=2304,k=768/f32")
        self.assertEqual(result.status, "pass", result.reason)

    def test_a_wrong_one_fails(self):
        report = run(NUMPY_NORM.format(parameters="", result="y[5, 7] *= 1.01; return y, rstd"))
        (result,) = report
        self.assertEqual((result.status, report.code), ("fail", 1))
        self.assertIn("y[5, 7]", result.reason)

    def test_an_exception_is_the_reason_with_its_line(self):
        (result,) = run(NUMPY_NORM.format(parameters="", result="raise KeyError('lost')"))
        self.assertEqual(result.status, "error")
        self.assertRegex(result.reason, r"KeyError: 'lost' \(mine\.py:11\)")

    def test_results_of_another_shape_or_number_are_no_results(self):
        (result,) = run(NUMPY_NORM.format(parameters="", result="return y"))
        self.assertIn("returned 1 tensors; expected 2: y, rstd", result.reason)
        (result,) = run(NUMPY_NORM.format(parameters="", result="return y[:1], rstd"))
        self.assertIn("returned y of shape (1, 512); expected (64, 512)", result.reason)

    def test_types_that_it_does_not_take_are_declined_with_a_reason(self):
        with self.assertRaisesRegex(gpubench.RunError, "no implementation takes an op"):
            run(NUMPY_NORM.format(parameters="", result="return y, rstd").replace('("f32",)', '("f64",)'))

    def test_an_attribute_that_it_ignores_is_declined_where_it_matters(self):
        source = NUMPY_NORM.format(parameters="", result="return y, rstd").replace(", epsilon)", ")").replace("+ epsilon", "")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mine.py"
            file.write_text(textwrap.dedent(source), encoding="utf-8")
            exec(compile(file.read_text(), str(file), "exec"), {})
        (offer,) = gpubench._implements._offers[-1:]
        call = gpubench.Call("rms_norm_forward", {"epsilon": 1e-5}, {"x": "f32"}, {"x": (1, 1)}, "f32", "exact", False, True)
        self.assertEqual(offer.declines(call), "")
        other = gpubench.Call("rms_norm_forward", {"epsilon": 1e-6}, {"x": "f32"}, {"x": (1, 1)}, "f32", "exact", False, True)
        self.assertEqual(offer.declines(other), "own_norm has no parameter 'epsilon', which is 1e-06 here")


class Files(unittest.TestCase):
    def test_one_that_cannot_be_imported_says_why(self):
        for source, text in [
            ("import gpubench\nimport no_such_module\n", r"No module named 'no_such_module' \(mine\.py:2\)"),
            ("x = 1\n", "mine.py has no function with @gpubench.implements"),
            (
                "import gpubench\n@gpubench.implements('rms_norm_forward')\ndef f(x, weight): pass\n",
                "f: rms_norm_forward has no weight; it has gamma, x, epsilon, rounds_before_gamma, out, stream",
            ),
            ("import gpubench\n@gpubench.implements('rms_norm')\ndef f(x): pass\n", "no op 'rms_norm'; did you mean"),
        ]:
            with self.subTest(text):
                try:
                    report = run(source)
                except gpubench.RunError as error:
                    self.assertRegex(str(error), text)
                else:
                    self.assertRegex(report.results[0].reason, text)

    def test_one_that_ends_the_process_costs_its_own_case_only(self):
        source = "import os, gpubench\n@gpubench.implements('rms_norm_forward', tensors='dlpack')\ndef f(x, out): os._exit(0)\n"
        (result,) = run(source)
        self.assertEqual(result.status, "error")


class Program(unittest.TestCase):
    def test_cases_are_those_of_the_list(self):
        found = gpubench.cases(suite="norm", tier="smoke", device="cpu")
        self.assertIn(NORM + "f32/x1", [case.id for case in found])
        self.assertEqual({case.suite for case in found}, {"norm"})

    def test_wrong_flags_raise_with_the_programs_words(self):
        with self.assertRaisesRegex(gpubench.RunError, "unknown suite|no suite|nrom") as caught:
            gpubench.run(suite="nrom", device="cpu")
        self.assertEqual(caught.exception.code, 2)


class Interpreter(unittest.TestCase):
    """Of the program by itself, started without anything that helps Python find the package."""

    def impl_list(self, program, cwd=None, **environment):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mine.py"
            file.write_text("import gpubench\n@gpubench.implements('rms_norm_forward')\ndef f(x, out): pass\n", encoding="utf-8")
            words = [program, "impl", "list", file, "--suite", "norm", "--tier", "smoke", "--device", "cpu"]
            plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            return subprocess.run(words, capture_output=True, text=True, check=False, env={**plain, **environment}, cwd=cwd)

    def test_the_program_in_the_build_folder_knows_where_its_package_is(self):
        listed = self.impl_list(os.environ["PROGRAM"], GPUBENCH_PYTHON=sys.executable)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("rms_norm_forward", listed.stdout)

    def test_what_the_current_folder_holds_is_not_imported(self):
        for variables in [{}, {"PYTHONPATH": ":/nowhere:"}, {"PYTHONSAFEPATH": "1"}]:
            with tempfile.TemporaryDirectory() as folder:
                for name in ["ctypes", "encodings", "gpubench"]:
                    (Path(folder) / f"{name}.py").write_text("open('imported', 'w')\n", encoding="utf-8")
                listed = self.impl_list(os.environ["PROGRAM"], cwd=folder, GPUBENCH_PYTHON=sys.executable, **variables)
                self.assertEqual(listed.returncode, 0, listed.stderr)
                self.assertFalse((Path(folder) / "imported").exists(), variables)

    def test_one_without_the_package_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(os.environ["PROGRAM"], folder)
            for interpreter, why in [(sys.executable, "exited with status 1"), ("/no/python3", "exited with status 127")]:
                listed = self.impl_list(alone, GPUBENCH_PYTHON=interpreter)
                self.assertEqual(listed.returncode, 2, listed.stderr)
                self.assertIn(f"needs the package gpubench, which {interpreter} cannot import ({why})", listed.stderr)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Examples(unittest.TestCase):
    def test_functions_of_pytorch_pass_on_a_cpu(self):
        file = Path(os.environ["SOURCE_DIR"]) / "reference/examples/torch_cpu.py"
        report = gpubench.run(impl=[file], suite=["norm", "attention", "loss", "optimizer"], tier="smoke", device="cpu")
        self.assertGreater(len(report), 4)
        for result in report:
            with self.subTest(result.id):
                self.assertEqual((result.status, result.reason), ("pass", ""))


if __name__ == "__main__":
    unittest.main()
