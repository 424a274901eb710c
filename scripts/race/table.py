"""The results of races as a table and as JSON."""
import json
import os
import time

from . import races


def layout(header, lines):
    widths = [max(len(row[i]) for row in [header, *lines]) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [header, *lines])


def of_races(chosen):
    return layout(("race", "peer", "goal", "case"),
                  [(race.name, peer, f"{goal:.2f}", race.case) for race in chosen for peer, goal in race.goals.items()])


def milliseconds(values):
    return f"{values['median_s'] * 1e3:.4g} ms ±{values['spread'] * 50:.1f}%"


def libraries(results, versions):
    """The libraries of each side: a difference of versions may explain the result."""
    ours = {}
    for result in results:
        ours.update(result.get("ours", {}).get("libraries", {}))
    sides = (("gpubench", ours), ("PyTorch", versions))
    return "\n".join(f"{side}: " + (", ".join(f"{name} {version}" for name, version in sorted(used.items())) or "not known")
                     for side, used in sides)


def of_results(results, versions):
    """One line per pair, with a reason if not raced, then the libraries of both sides and the number of goals met."""
    lines, met, missed, absent = [], 0, 0, 0
    for result, peer, values in races.rows(results):
        if "ratio" not in values:
            absent += 1
            lines.append((result["name"], peer, "-", "-", "-", "-", "NOT RACED: " + values["reason"]))
            continue
        met, missed = met + bool(values["met"]), missed + (not values["met"])
        lines.append((result["name"], peer, milliseconds(result["ours"]), milliseconds(values),
                      f"{values['ratio']:.3f} ({values['ratio_min']:.3f}..{values['ratio_max']:.3f})",
                      f"{values['goal']:.2f}", "met" if values["met"] else "MISSED"))
    header = ("race", "peer", "ours", "peer's time", "ours/peer (pairs)", "goal", "")
    return f"{layout(header, lines)}\n\n{libraries(results, versions)}\n\n{met} goals met, {missed} missed, {absent} not raced"


def write_json(path, results, versions):
    """Replaces `path` atomically, so that an interruption leaves the last complete file."""
    document = {"schema": "gpubench-race", "schema_version": 1,
                "written_at": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()), "versions": versions,
                "ratio": "speed of gpubench over speed of the peer, of medians of blocks", "races": results}
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(path + ".part", path)
