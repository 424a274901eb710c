"""gpubench's side: one run of the program per block, read from its report."""
import json
import math
import os
import subprocess
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


def case_of(report, case):
    """The record of `case` in a report of gpubench. Throws CannotRace where it is not there."""
    for record in report.get("gpubench", {}).get("cases", []):
        if record.get("id") == case:
            return record
    raise CannotRace(f"the report has no case {case}")


def seconds_of(record):
    """The median time of one run of the program. Throws CannotRace where it is not a positive number."""
    median = (record.get("summary") or {}).get("median_ns")
    if not isinstance(median, (int, float)) or not math.isfinite(median) or not median > 0:
        raise CannotRace(f"{record['id']} has no time ({record.get('reason') or record.get('status')})")
    return median * 1e-9


class Ours:
    def __init__(self, program, device, tier="standard"):
        self.program, self.device, self.tier = program, device, tier

    def report(self, case, check):
        words = [self.program, "run", "--device", self.device, "--tier", self.tier, "--filter", pattern(case),
                 "--check", check, "--breakdown", "off", "--json", "-", "--progress", "none"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GPUBENCH_")}
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=environment)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotRace(f"gpubench: {error}") from error
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise CannotRace(f"gpubench wrote no report (exit code {done.returncode}): {last}") from error

    def checked(self, case):
        """Runs and checks the case; what it says of itself. Throws CannotRace where it did not pass."""
        report = self.report(case, "sample")
        record = case_of(report, case)
        if record.get("status") != "pass":
            raise CannotRace(f"gpubench: {record.get('status')}: {record.get('reason')}")
        device = report["context"]["gpubench"]["devices"][0]
        return {"seconds": seconds_of(record), "implementation": record["implementation"], "device": device["name"],
                "libraries": device["libraries"], "copies": record["copies"], "cache": record["cache"]}

    def timed(self, case):
        """One block: the median of a whole run of gpubench, whose results checked() has judged before."""
        return seconds_of(case_of(self.report(case, "off"), case))

    def listed(self):
        """The ids of all cases that the program has, on any device."""
        done = subprocess.run([self.program, "list", "--tier", "large", "--format", "json"], capture_output=True, text=True,
                              timeout=60, check=True)
        return {entry["id"] for entry in json.loads(done.stdout)["cases"]}
