"""gpubench's side: one process for all blocks of a race, which gives rounds on demand (--turns) and a report at its end."""
import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

from .races import CannotRace


def default_program():
    """The packaged program, else the built one."""
    root = Path(__file__).resolve().parents[2]
    packed = root / "bin" / "gpubench"
    return packed if packed.exists() else root / "build" / "gpubench"


def pattern(case):
    """A --filter that matches this id alone; of its characters, '.' and '+' mean something in a regular expression."""
    return "^" + case.replace(".", r"\.").replace("+", r"\+") + "$"


def batch_words(batch):
    return ["--batch", str(batch)] if batch else []


def case_of(report, case):
    """The record of `case` in a report of gpubench. Throws CannotRace where it is not there."""
    for record in report.get("gpubench", {}).get("cases", []):
        if record.get("id") == case:
            return record
    raise CannotRace(f"the report has no case {case}")


def seconds_of(median_ns, what):
    """Of a time in nanoseconds. Throws CannotRace where it is not a positive number."""
    if not isinstance(median_ns, (int, float)) or not math.isfinite(median_ns) or not median_ns > 0:
        raise CannotRace(f"gpubench: {what} has no time")
    return median_ns * 1e-9


class Turns:
    """A process that has planned and checked one case, and runs its rounds on request."""

    def __init__(self, words):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "report.json")
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("GPUBENCH_") or key == "GPUBENCH_TRUST_LIBRARIES"}
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8")
        try:
            self.process = subprocess.Popen([*words, "--json", self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=self.log, text=True, env=environment)
        except OSError as error:
            raise CannotRace(f"gpubench: {error}") from error

    def answer(self, seconds):
        """The result of a turn of that many seconds: {"copies": 3, "median_ns": 1234.5}; None after the last turn."""
        try:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def report(self):
        """Ends the turns. Throws CannotRace where no report comes."""
        try:
            self.process.communicate(timeout=300)
            with open(self.path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            self.log.seek(0)
            last = (self.log.read().strip().splitlines() or [str(error)])[-1]
            raise CannotRace(f"gpubench wrote no report (exit code {self.process.poll()}): {last}") from error

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.log.close()
        self.folder.cleanup()


class Ours:
    """One case at a time: begin(), timed() as often as wanted, finish(); close() whatever happened."""

    def __init__(self, program, device, tier="standard", seconds=0.7):
        self.program, self.device, self.tier, self.seconds = program, device, tier, seconds
        self.turns = None

    def begin(self, case, batch=0):
        """Plans and checks the case and takes a first turn, which is not counted. How many cold copies it has; throws
        CannotRace where it did not pass."""
        self.case = case
        self.turns = self.open(case, batch)
        answer = self.turns.answer(self.seconds)
        if answer is None:
            self.finish()  # says why
            raise CannotRace("gpubench: no turn was answered")
        return answer["copies"]

    def open(self, case, batch):
        return Turns([self.program, "run", "--device", self.device, "--tier", self.tier, "--filter", pattern(case),
                      "--check", "sample", "--breakdown", "off", "--isolate", "off", "--turns", "--progress", "none",
                      *batch_words(batch)])

    def timed(self):
        """One block: seconds of a run of the program, the median over a turn."""
        answer = self.turns.answer(self.seconds)
        if answer is None:
            self.finish()
            raise CannotRace("gpubench: a turn was not answered")
        return seconds_of(answer["median_ns"], "a turn")

    def finish(self):
        """Checks again the very buffers that were timed; what the case says of itself. Throws CannotRace where it did not
        pass."""
        report = self.turns.report()
        record = case_of(report, self.case)
        if record.get("status") != "pass":
            raise CannotRace(f"gpubench: {record.get('status')}: {record.get('reason')}")
        device = report["context"]["gpubench"]["devices"][0]
        return {"implementation": record["implementation"], "device": device["name"], "libraries": device["libraries"],
                "copies": record["copies"], "cache": record["cache"]}

    def close(self):
        if self.turns is not None:
            self.turns.close()
            self.turns = None

    def listed(self, batch=0):
        """The ids of all cases that the program has, on any device; with a batch, of those that have one."""
        done = subprocess.run([self.program, "list", "--tier", "large", "--format", "json", *batch_words(batch)],
                              capture_output=True, text=True, timeout=60, check=True)
        return {entry["id"] for entry in json.loads(done.stdout)["cases"]}
