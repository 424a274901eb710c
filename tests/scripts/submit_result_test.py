#!/usr/bin/env python3
"""Tests of scripts/submit-result: submit_result_test.py SOURCE_DIR GPUBENCH

The real program measures, validates and draws reports; the tests change one thing in each.
"""
import copy
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.dont_write_bytecode = True

source, gpubench = Path(sys.argv[1]), sys.argv[2]

README = "# Results\n\n<!-- list of results: made by scripts/submit-result -->\nold\n<!-- end of list -->\n\nlast words\n"


class SubmitResult(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        measured = subprocess.run([gpubench, "--suite", "memory", "--tier", "smoke", "--filter", "copy", "--device", "cpu",
                                   "--out", folder / "run", "--progress", "none"], capture_output=True, text=True, check=False)
        if measured.returncode != 0:
            raise RuntimeError(measured.stdout + measured.stderr)
        cls.report = json.loads((folder / "run" / "report.json").read_text())
        del cls.report["digest"]  # the tests change the report

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.own = tempfile.TemporaryDirectory()
        self.addCleanup(self.own.cleanup)
        self.results = Path(self.own.name) / "results"
        self.results.mkdir()
        (self.results / "README.md").write_text(README)

    def run_script(self, *words):
        return subprocess.run([sys.executable, source / "scripts" / "submit-result", "--program", gpubench, "--results",
                               self.results, *words], capture_output=True, text=True, check=False)

    def submit(self, change=None, *words):
        report = copy.deepcopy(self.report)
        if change:
            change(report)
        path = Path(self.own.name) / "report.json"
        path.write_text(json.dumps(report))
        return self.run_script(path, *words)

    def refused(self, change, reason):
        answer = self.submit(change)
        self.assertEqual(answer.returncode, 2, answer.stderr)
        self.assertIn(reason, answer.stderr)
        self.assertEqual([p.name for p in self.results.iterdir()], ["README.md"])

    def test_a_report_is_filed_under_its_devices_and_its_date_with_its_charts(self):
        def of_a_xeon(report):
            report["context"]["gpubench"]["devices"][0].update(name="Intel(R) Xeon(R) Processor", units=2)
            report["context"]["date"] = report["context"]["gpubench"]["started_at"] = "2026-01-02T03:04:05+00:00"
        answer = self.submit(of_a_xeon)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        folder = self.results / "intel-xeon-processor-2-cpus" / "2026-01-02"
        self.assertTrue((folder / "report.json").is_file())
        charts = [path.read_text() for path in (folder / "charts").glob("*.svg")]
        self.assertGreater(len(charts), 0)
        self.assertTrue(all(chart.startswith("<svg xmlns=") for chart in charts))
        readme = (self.results / "README.md").read_text()
        self.assertIn("| intel-xeon-processor-2-cpus | [2026-01-02](intel-xeon-processor-2-cpus/2026-01-02/report.json) |", readme)
        self.assertNotIn("old\n", readme)
        self.assertTrue(readme.endswith("last words\n"))
        self.assertEqual(self.run_script("--check").returncode, 0)

    def test_what_is_private_is_removed_and_nothing_else_changes(self):
        def private(report):
            report["context"].update(host_name="secret-host", executable="/home/secret/gpubench")
            run = report["context"]["gpubench"]
            run["argv"] = ["--out", "/home/secret/out", "--config=/home/secret/c.toml", "--seed", "42"]
            run["devices"][0]["properties"]["uuid"] = "GPU-secret"
        self.assertEqual(self.submit(private, "--name", "My Machine!").returncode, 0)
        path = next(self.results.glob("my-machine/*/report.json"))
        filed = json.loads(path.read_text())
        self.assertNotIn("secret", path.read_text())
        run = filed["context"]["gpubench"]
        self.assertRegex(filed["context"]["host_name"], "^host-[0-9a-f]{16}$")
        self.assertRegex(run["devices"][0]["properties"]["uuid"], "^gpu-[0-9a-f]{16}$")
        self.assertEqual(run["argv"], ["--seed", "42"])
        self.assertEqual(filed["gpubench"], self.report["gpubench"])
        self.assertEqual(filed["benchmarks"], self.report["benchmarks"])

    def test_what_is_not_fit_to_be_published_is_refused_with_its_reason(self):
        def set_run(**members):
            return lambda report: report["context"]["gpubench"].update(members)
        self.refused(set_run(complete=False), "not complete")
        self.refused(set_run(injected="gemm 1.05"), "measured with an injected fault (gemm 1.05)")
        self.refused(set_run(tier=3), "tier")
        self.refused(lambda report: report.pop("context"), "context")

    def test_a_case_that_failed_or_was_not_checked_is_a_reason_to_refuse(self):
        loader = SourceFileLoader("submit_result", str(source / "scripts" / "submit-result"))
        script = module_from_spec(spec_from_loader("submit_result", loader))
        loader.exec_module(script)
        self.assertEqual(script.reasons_against(self.report), [])
        for verdict in ("fail", "error", "downgraded", "not_proven", "unverified"):
            report = copy.deepcopy(self.report)
            report["gpubench"]["totals"][verdict] = 2
            self.assertEqual(script.reasons_against(report), [f"2 of its cases are '{verdict}'"])
        report = copy.deepcopy(self.report)
        report["context"]["gpubench"]["check"] = "off"
        self.assertEqual(script.reasons_against(report), ["its results were not checked"])

    def test_what_is_there_is_not_overwritten(self):
        self.assertEqual(self.submit(None, "--name", "one").returncode, 0)
        before = next(self.results.glob("one/*/report.json")).read_bytes()
        answer = self.submit(lambda report: report["context"].update(num_cpus=77), "--name", "one")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("is there already", answer.stderr)
        self.assertEqual(next(self.results.glob("one/*/report.json")).read_bytes(), before)

    def test_the_check_sees_a_stale_list_a_host_name_and_missing_charts(self):
        self.assertEqual(self.submit(None, "--name", "one").returncode, 0)
        self.assertEqual(self.run_script("--check").returncode, 0)
        path = next(self.results.glob("one/*/report.json"))
        report = json.loads(path.read_text())
        report["context"]["host_name"] = "secret-host"
        del report["digest"]  # as in a report edited by hand
        path.write_text(json.dumps(report))
        shutil.rmtree(path.parent / "charts")
        (self.results / "README.md").write_text(README)
        answer = self.run_script("--check")
        self.assertEqual(answer.returncode, 1)
        for words in ("does not list", "holds a host name", "has no charts"):
            self.assertIn(words, answer.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
