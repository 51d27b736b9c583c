"""Nadaraya–Watson regression beside PyTorch: the same points and queries, on the same threads.

    python bench/regression.py [--points N] [--queries M] [--rounds N] [--threads N] [--json]
                               [--program FILE]

Every query asks every point by a Gaussian kernel. PyTorch computes
softmax(-(x - x_i)^2 / (2 w^2)) @ y in chunks of queries, the fastest of several sizes; Regard runs
in a process of its own between its rounds, and measures as many exponentials alone in the same run.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import environment

CHUNKS = [8, 32, 128, 512]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--width", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--program", help="a binary of regard; without it, one is built")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def program(given):
    if given.program:
        return pathlib.Path(given.program)
    root = environment.HERE.parent
    build = ["cargo", "build", "--release", "-p", "regard"]
    subprocess.run(build, check=True, cwd=root, stdout=sys.stderr)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return target / "release" / "regard"


def ours(binary, given, folder):
    command = [binary, "bench", "regression", "--points", given.points, "--queries", given.queries,
               "--width", given.width, "--repeat", 3, "--threads", given.threads, "--json",
               "--save", folder]
    text = subprocess.run([str(part) for part in command], check=True, capture_output=True,
                          text=True).stdout
    return json.loads(text)


def main():
    given = arguments()
    environment.enter(given.threads, build=False)

    import numpy as np
    import torch

    torch.set_num_threads(given.threads)
    binary = program(given)
    with tempfile.TemporaryDirectory() as folder:
        rounds = [ours(binary, given, folder)]
        files = [pathlib.Path(folder) / name for name in ("points", "values", "queries", "predictions")]
        if not files[-1].exists():
            files[-1] = files[-1].with_name("said")  # older builds
        arrays = [np.fromfile(file, dtype=np.float32) for file in files]
        points, values, queries, said = map(torch.from_numpy, arrays)

        @torch.inference_mode()
        def theirs(chunk, asked):
            parts = []
            for some in asked.split(chunk):
                scores = -((some[:, None] - points[None, :]) ** 2) / (2 * given.width**2)
                parts.append(torch.softmax(scores, dim=1) @ values)
            return torch.cat(parts)

        def seconds(chunk, asked):
            started = time.perf_counter()
            found = theirs(chunk, asked)
            return time.perf_counter() - started, found

        # Which chunk is fastest is found on a part of the queries.
        part = queries[: max(len(queries) // 10, 1)]
        theirs(CHUNKS[0], part)
        best = min(CHUNKS, key=lambda chunk: seconds(chunk, part)[0])
        times = []
        for _ in range(given.rounds):
            took, found = seconds(best, queries)
            times.append(1e3 * took)
            rounds.append(ours(binary, given, folder))
        apart = (found - said).abs().max().item()
    peer = statistics.median(times)
    mine = statistics.median(one["median_ms"] for one in rounds)
    exp = statistics.median(one["exp_median_ms"] for one in rounds)
    report = {
        "points": given.points, "queries": given.queries, "threads": given.threads,
        "torch": torch.__version__, "torch_chunk": best, "torch_ms": peer, "regard_ms": mine,
        "exp_ms": exp, "torch_over_regard": peer / mine, "regard_over_exp": mine / exp,
        "apart": apart,
    }
    if given.json:
        print(json.dumps(report, indent=1))
    else:
        print(f"{given.points} points, {given.queries} queries, {given.threads} threads\n"
              f"PyTorch {torch.__version__}, chunks of {best}: {peer:.0f} ms\n"
              f"Regard: {mine:.0f} ms, {peer / mine:.1f} times as fast\n"
              f"as many exponentials alone: {exp:.0f} ms, of which Regard takes "
              f"{mine / exp:.2f} times as long\n"
              f"at most {apart:.1e} apart")
    return 0 if apart < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
