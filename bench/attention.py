"""Regard and PyTorch side by side: one process, the same arrays, the same threads.

    python bench/attention.py [--quick] [--json] [--threads N] [--only dense,gat] [--no-build]

Makes bench/.venv if it is not there, installs PyTorch and PyTorch Geometric into it, builds the
wheel from ./python, and prints the tables of bench/README.md. Takes some minutes on two cores.
"""

import argparse
import json
import os
import platform
import sys

import environment

GROUP_NAMES = ["dense", "causal", "window", "additive", "gat"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few shapes, few repeats")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default=",".join(GROUP_NAMES), help="of " + ",".join(GROUP_NAMES))
    parser.add_argument("--no-build", action="store_true", help="use the wheel that is installed")
    given = parser.parse_args()
    given.only = given.only.split(",")
    if unknown := set(given.only) - set(GROUP_NAMES):
        parser.error(f"--only: got {', '.join(unknown)}, need some of {', '.join(GROUP_NAMES)}")
    return given


def cpu():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(x.split(":")[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    given = arguments()
    environment.enter(given.threads, build=not given.no_build)

    import peers
    import regard
    import report
    import torch
    from measure import measure

    torch.set_num_threads(given.threads)
    regard.set_threads(given.threads)
    repeats, at_least = (3, 0.002) if given.quick else (9, 0.01)
    peak, rows = regard.peak_gflops(), []
    for group in given.only:
        for case in peers.GROUPS[group](given.quick):
            row = measure(case, repeats, at_least)
            rows.append(row)
            print(f"{row['name']}: {row['peer_ms']:.3f} / {row['ours_ms']:.3f} ms, "
                  f"{row['ratio']:.2f}", file=sys.stderr)
        # The best of all: a neighbour on the machine can only make it smaller.
        peak = max(peak, regard.peak_gflops())
    machine = {
        "cpu": cpu(),
        "threads": given.threads,
        "isa": regard.isa(),
        "peak_gflops": peak,
        "torch": torch.__version__,
    }
    if given.json:
        print(json.dumps({"machine": machine, "rows": rows}, indent=1))
    else:
        print(report.markdown(rows, machine))


if __name__ == "__main__":
    main()
