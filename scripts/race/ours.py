"""gpubench's side: one process for all blocks of a race, which runs rounds on demand (--turns) and writes a report."""
import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

from .races import CannotRace


def default_program():
    """The packaged program, or the built one."""
    root = Path(__file__).resolve().parents[2]
    packed = root / "bin" / "gpubench"
    return packed if packed.exists() else root / "build" / "gpubench"


def pattern(case):
    """A --filter that matches only this id. Of its characters, only '.' and '+' are special in regular expressions."""
    return "^" + case.replace(".", r"\.").replace("+", r"\+") + "$"


def batch_words(batch):
    return ["--batch", str(batch)] if batch else []


def case_of(report, case):
    """The record of `case` in a report. Raises CannotRace if it is missing."""
    for record in report.get("gpubench", {}).get("cases", []):
        if record.get("id") == case:
            return record
    raise CannotRace(f"the report has no case {case}")


def seconds_of(median_ns, what):
    """Seconds from nanoseconds. Raises CannotRace if it is not a positive number."""
    if not isinstance(median_ns, (int, float)) or not math.isfinite(median_ns) or not median_ns > 0:
        raise CannotRace(f"gpubench: {what} has no time")
    return median_ns * 1e-9


class Turns:
    """A process that plans and checks one case, then runs rounds on request."""

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
        """Ends the turns and returns the report. Raises CannotRace without a report."""
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
    """One case at a time: begin(), timed() repeatedly, finish(); close() in any case."""

    def __init__(self, program, device, tier="standard", seconds=0.7):
        self.program, self.device, self.tier, self.seconds = program, device, tier, seconds
        self.turns = None

    def begin(self, case, batch=0):
        """Plans and checks the case and runs a first turn, which does not count. Returns the number of cold copies. Raises
        CannotRace if the case did not pass."""
        self.case = case
        self.turns = self.open(case, batch)
        answer = self.turns.answer(self.seconds)
        if answer is None:
            self.finish()  # raises with the reason
            raise CannotRace("gpubench: no turn was answered")
        return answer["copies"]

    def open(self, case, batch):
        return Turns([self.program, "run", "--device", self.device, "--tier", self.tier, "--filter", pattern(case),
                      "--check", "sample", "--breakdown", "off", "--isolate", "off", "--turns", "--progress", "none",
                      *batch_words(batch)])

    def timed(self):
        """One block: median seconds of a run over one turn."""
        answer = self.turns.answer(self.seconds)
        if answer is None:
            self.finish()
            raise CannotRace("gpubench: a turn was not answered")
        return seconds_of(answer["median_ns"], "a turn")

    def finish(self):
        """Checks the timed buffers again; returns the values of the case. Raises CannotRace if it did not pass."""
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
        """The ids of all cases of the program; with a batch, of those with a batch axis."""
        done = subprocess.run([self.program, "list", "--tier", "large", "--format", "json", *batch_words(batch)],
                              capture_output=True, text=True, timeout=60, check=True)
        return {entry["id"] for entry in json.loads(done.stdout)["cases"]}
