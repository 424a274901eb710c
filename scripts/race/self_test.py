"""Tests of everything except the timing of PyTorch: fixed reports, ratios computed by hand, and one real run."""
import json
import os
import tempfile
import unittest

from . import ours, races, table

CASE = "gemm/matmul/m=4096,n=4096,k=4096/bf16/x1"


def report(status="pass", median_ns=200000.0, case=CASE):
    """A report of gpubench with the fields that the races read."""
    return {"context": {"gpubench": {"devices": [{"name": "NVIDIA X", "libraries": {"cublasLt": "13.1.0"}}]}},
            "gpubench": {"cases": [{"id": case, "status": status, "reason": "because", "implementation": "cublaslt:1",
                                    "copies": 3, "cache": "cold", "summary": {"median_ns": median_ns}}]}}


class CannedTurns:
    """Returns the answers in order, then the report."""

    def __init__(self, final, medians_ns):
        self.final, self.medians_ns, self.closed = final, list(medians_ns), False

    def answer(self, seconds):
        return {"copies": 3, "median_ns": self.medians_ns.pop(0)} if self.medians_ns else None

    def report(self):
        return self.final

    def close(self):
        self.closed = True


class CannedOurs(ours.Ours):
    """The first turn does not count."""

    def __init__(self, final, *medians_ns):
        super().__init__("gpubench", "cuda")
        self.canned = CannedTurns(final, medians_ns)

    def open(self, case, batch):
        return self.canned


class CannedPeers:
    """Returns times in order, by peer; a peer without times cannot be raced."""

    def __init__(self, **times):
        self.times = {name.replace("_", "."): list(values) for name, values in times.items()}

    def side(self, race, peer, copies):
        if peer not in self.times:
            raise RuntimeError("no kernel")
        return lambda: self.times[peer].pop(0)

    def release(self):
        pass


GEMM = races.Race("gemm 4096", CASE, {"torch.mm": 1.0})


class Order(unittest.TestCase):
    def test_blocks_alternate_so_that_a_drift_costs_both_sides_the_same(self):
        self.assertEqual("".join(races.schedule(["A", "B"], 4)), "ABBAABBA")
        self.assertEqual("".join(races.schedule(["A", "B", "C"], 2)), "ABCCBA")
        for blocks in (5, 6):
            order = races.schedule(["A", "B"], blocks)
            self.assertEqual((order.count("A"), order.count("B")), (blocks, blocks))


class Ratio(unittest.TestCase):
    def test_it_is_of_speeds_so_that_half_the_time_is_two(self):
        result = races.compare([1.0, 1.0, 1.1], [2.0, 2.2, 2.0], 1.5)
        self.assertEqual((result["ratio"], result["met"]), (2.0, True))
        self.assertAlmostEqual(result["ratio_max"], 2.2)
        self.assertAlmostEqual(result["ratio_min"], 2.0 / 1.1)

    def test_a_goal_is_met_at_its_value_and_missed_just_below(self):
        self.assertTrue(races.compare([1.0], [1.5], 1.5)["met"])
        self.assertFalse(races.compare([1.0], [1.499], 1.5)["met"])

    def test_what_is_no_number_meets_no_goal(self):
        self.assertFalse(races.compare([1.0], [float("nan")], 0.0)["met"])

    def test_the_spread_is_the_range_over_the_median(self):
        self.assertAlmostEqual(races.side([1.0, 2.0, 1.5])["spread"], 1.0 / 1.5)


class Running(unittest.TestCase):
    def run_gemm(self, final, medians_ns, **peers):
        own = CannedOurs(final, *medians_ns)
        result = races.run(GEMM, own, CannedPeers(**peers), 2)
        self.assertTrue(own.canned.closed)
        return result

    def test_medians_of_blocks_make_the_ratio_and_the_first_turn_is_not_counted(self):
        result = self.run_gemm(report(), [9e9, 100e3, 300e3], torch_mm=[190e-6, 250e-6])
        self.assertAlmostEqual(result["ours"]["median_s"], 200e-6)
        self.assertAlmostEqual(result["peers"]["torch.mm"]["ratio"], 1.1)
        self.assertEqual(races.exit_code([result]), 0)

    def test_the_table_says_what_each_side_computed_with(self):
        result = self.run_gemm(report(), [200e3] * 3, torch_mm=[200e-6, 200e-6])
        text = table.of_results([result], {"torch": "2.11", "cublasLt": "13.0.2"})
        self.assertIn("gpubench: cublasLt 13.1.0\nPyTorch: cublasLt 13.0.2, torch 2.11", text)

    def test_a_missed_goal_is_said_and_is_exit_1(self):
        result = self.run_gemm(report(), [200e3] * 3, torch_mm=[199e-6, 199e-6])
        self.assertEqual(races.exit_code([result]), 1)
        self.assertIn("MISSED", table.of_results([result], {}))
        self.assertIn("0 goals met, 1 missed, 0 not raced", table.of_results([result], {}))

    def test_a_case_that_did_not_pass_is_not_raced(self):
        result = self.run_gemm(report(status="fail"), [], torch_mm=[1.0, 1.0])
        self.assertEqual((result["reason"], result["peers"]), ("gpubench: fail: because", {}))
        self.assertIn("NOT RACED: gpubench: fail", table.of_results([result], {}))
        self.assertEqual(races.exit_code([result]), 3)

    def test_a_case_that_fails_when_it_is_checked_again_has_no_ratio(self):
        result = self.run_gemm(report(status="fail"), [200e3] * 3, torch_mm=[1.0, 1.0])
        self.assertEqual((result["reason"], result["peers"]), ("ours: CannotRace: gpubench: fail: because", {}))
        self.assertEqual(races.exit_code([result]), 3)

    def test_a_process_that_ends_between_two_blocks_is_told(self):
        result = self.run_gemm(report(status="error"), [200e3, 200e3], torch_mm=[1.0, 1.0])
        self.assertEqual(result["reason"], "ours: CannotRace: gpubench: error: because")

    def test_a_peer_that_fails_is_told_and_the_others_are_raced(self):
        race = races.Race("two", CASE, {"torch.mm": 1.0, "other": 1.0})
        result = races.run(race, CannedOurs(report(), *[200e3] * 3), CannedPeers(torch_mm=[1.0, 1.0]), 2)
        self.assertEqual(result["peers"]["other"]["reason"], "RuntimeError: no kernel")
        self.assertTrue(result["peers"]["torch.mm"]["met"])
        self.assertEqual(races.exit_code([result]), 3)

    def test_a_race_without_time_is_not_reached_and_not_hidden(self):
        text = table.of_results([races.not_reached(GEMM)], {})
        self.assertIn("NOT RACED: not reached within the budget", text)
        self.assertIn("0 goals met, 0 missed, 1 not raced", text)


class Reports(unittest.TestCase):
    def test_a_report_without_the_case_and_a_turn_without_a_time_are_no_block(self):
        for bad in (report(case="other"), {}):
            with self.assertRaises(races.CannotRace):
                ours.case_of(bad, CASE)
        for bad in (None, 0.0, float("nan")):
            with self.assertRaises(races.CannotRace):
                ours.seconds_of(bad, "a turn")

    def test_a_program_that_cannot_run_is_told_with_its_last_words(self):
        with self.assertRaisesRegex(races.CannotRace, "no such|No such"):
            ours.Ours("/nowhere/gpubench", "cuda").begin(CASE)

    def test_the_filter_matches_the_id_alone(self):
        self.assertEqual(ours.pattern("a/b=1/x1"), "^a/b=1/x1$")
        self.assertEqual(ours.pattern("a.b+c"), r"^a\.b\+c$")

    def test_json_is_replaced_as_a_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "races.json")
            table.write_json(path, [races.not_reached(GEMM)], {"torch": "x"})
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["races"][0]["name"], "gemm 4096")
            self.assertEqual(os.listdir(folder), ["races.json"])


class RealProgram(unittest.TestCase):
    program = ""

    def setUp(self):
        if not os.path.exists(self.program):
            self.skipTest("gpubench is not built")

    def test_one_process_gives_all_turns_and_its_report_at_the_end(self):
        run = ours.Ours(self.program, "cpu", tier="smoke", seconds=0.05)
        try:
            self.assertGreaterEqual(run.begin("memory/copy/n=1048576/bf16/x1"), 1)
            process = run.turns.process.pid
            self.assertTrue(all(run.timed() > 0 for _ in range(3)))
            self.assertEqual(run.turns.process.pid, process)
            self.assertIn("implementation", run.finish())
        finally:
            run.close()

    def test_a_case_that_is_unknown_is_told_with_the_programs_words(self):
        run = ours.Ours(self.program, "cpu", tier="smoke")
        try:
            with self.assertRaisesRegex(races.CannotRace, "no case matches"):
                run.begin("memory/none/x1")
        finally:
            run.close()

    def test_it_has_every_case_that_is_raced(self):
        run = ours.Ours(self.program, "cpu")
        raced = races.all_races("cuda") + races.all_races("cpu")
        known = {batch: run.listed(batch) for batch in {race.batch for race in raced}}
        for race in raced:
            self.assertIn(race.case, known[race.batch])


def main(program):
    RealProgram.program = program
    suite = unittest.TestLoader().loadTestsFromModule(__import__(__name__, fromlist=["main"]))
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1
