"""How long `mire --help` takes beyond a bare interpreter.

Usage: python bench/startup.py [RUNS]. Both are started alternately; medians are compared, so a busy machine
disturbs both alike. The goal is at most 100 ms of interpreter time beyond `python -c pass`.
"""

import os
import resource
import statistics
import subprocess
import sys
import time

GOAL_MS = 100.0


def measure(command: list[str]) -> tuple[float, float]:
    """Wall and processor milliseconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, used * 1000


def main(runs: int) -> int:
    """Measure, print, and say by the exit code whether the goal is met."""
    script = os.path.join(os.path.dirname(sys.executable), "mire")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "mire --help": [script, "--help"],
        "mire --version": [script, "--version"],
    }
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(runs + 1):
        for name, command in commands.items():
            samples[name].append(measure(command))
    medians = {
        name: (statistics.median(w for w, _ in found[1:]), statistics.median(c for _, c in found[1:]))
        for name, found in samples.items()
    }
    base_wall, base_used = medians["python -c pass"]
    print(f"{'command':<16} {'wall ms':>8} {'cpu ms':>8} {'beyond: wall':>13} {'cpu':>7} {'ratio':>6}")
    for name, (wall, used) in medians.items():
        beyond = f"{wall - base_wall:13.1f} {used - base_used:7.1f} {wall / base_wall:6.2f}"
        print(f"{name:<16} {wall:8.1f} {used:8.1f} {beyond}")
    extra_ms = medians["mire --help"][1] - base_used
    print(f"goal: at most {GOAL_MS:.0f} ms beyond python -c pass; measured {extra_ms:.1f} ms of processor time")
    return int(extra_ms > GOAL_MS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
