"""Truncated self-attention on long recordings: Regard and PyTorch, one process, the same arrays.

    python bench/speech.py [--threads N] [--context 64] [--frames 3000,6000,12000] [--json] [--no-build]

A frame of speech is 10 ms, so that 6,000 frames are a minute. Each frame sees --context frames
before it and as many after it. PyTorch's scaled_dot_product_attention is given the same window as
a boolean mask, which saves it nothing, and is run without one as well. Peak memory is that of a
process of its own for each way, above what it had before it began (Linux only).
"""

import argparse
import json
import os
import subprocess
import sys

import environment

SHAPE = {"heads": 4, "width": 64}
WAYS = ["ours", "mask", "dense"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--frames", default="3000,6000,12000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-memory", action="store_true", help="measure time only")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--no-build", action="store_true", help="use the wheel that is installed")
    parser.add_argument("--memory", nargs=3, metavar=("WAY", "FRAMES", "BACKWARD"), help=argparse.SUPPRESS)
    return parser.parse_args()


def calls(frames, context, backward):
    """The three ways as functions without arguments, on the same numbers."""
    import numpy
    import regard
    import torch

    generator = numpy.random.default_rng(0)
    shape = (1, SHAPE["heads"], frames, SHAPE["width"])
    q, k, v, dout = (generator.standard_normal(shape, dtype=numpy.float32) for _ in range(4))
    allowed = regard.window(context, context)

    def ours():
        if backward:
            return regard.attend_vjp(q, k, v, dout, mask=allowed)
        return regard.attend(q, k, v, mask=allowed)

    def theirs(mask):
        tensors = [torch.from_numpy(x).requires_grad_(backward) for x in (q, k, v)]
        upstream = torch.from_numpy(dout)

        def run():
            out = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=mask)
            if backward:
                return out, torch.autograd.grad(out, tensors, upstream)
            return out

        return run

    def window():
        i = torch.arange(frames)
        return (i[None] - i[:, None]).abs() <= context

    return {"ours": lambda: ours, "mask": lambda: theirs(window()), "dense": lambda: theirs(None)}


def resident(key):
    """Megabytes of this process, by a key of Linux: VmRSS now, VmHWM at most."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def peak(way, frames, context, backward):
    """Megabytes above what the process had with its arrays, before the first call."""
    call = calls(frames, context, backward)[way]
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the highest is what there is now
    before = resident("VmRSS")
    kept = call()()
    del kept
    return resident("VmHWM") - before


def memory(way, frames, given, backward):
    command = [sys.executable, __file__, "--memory", way, str(frames), str(int(backward)),
               "--context", str(given.context), "--threads", str(given.threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def check(ways):
    """All agree where they should."""
    import numpy

    ours, theirs = ways["ours"]()(), ways["mask"]()()
    numpy.testing.assert_allclose(ours, theirs.numpy(), atol=2e-5)


def main():
    given = arguments()
    environment.enter(given.threads, build=not given.no_build)
    import regard
    import torch
    from measure import Case, measure

    torch.set_num_threads(given.threads)
    regard.set_threads(given.threads)
    if given.memory:
        way, frames, backward = given.memory
        print(peak(way, int(frames), given.context, backward == "1"))
        return
    rows = []
    for frames in map(int, given.frames.split(",")):
        check(calls(frames, given.context, False))
        for backward in [False, True]:
            ways = calls(frames, given.context, backward)
            ours = ways["ours"]()
            row = {"frames": frames, "pass": "forward + backward" if backward else "forward"}
            for way in ["mask", "dense"]:
                found = measure(Case("speech", way, ways[way](), ours), given.repeats, 0.01)
                row["ours_ms"] = min(row.get("ours_ms", 1e30), found["ours_ms"])
                row[f"{way}_ms"] = found["peer_ms"]
                row[f"{way}_ratio"] = found["ratio"]
            for way in [] if given.no_memory else WAYS:
                row[f"{way}_mb"] = memory(way, frames, given, backward)
            rows.append(row)
            print(row, file=sys.stderr)
    if given.json:
        print(json.dumps({"threads": given.threads, "torch": torch.__version__, "rows": rows}, indent=1))
        return
    print(f"B 1, H {SHAPE['heads']}, D {SHAPE['width']}, {given.context} frames either way; PyTorch with the same "
          f"mask and without one (dense); {given.threads} threads, PyTorch {torch.__version__}\n")
    columns = [("frames", "{}"), ("pass", "{}"), ("ours_ms", "{:.2f}"), ("mask_ms", "{:.1f}"), ("mask_ratio", "{:.1f}"),
               ("dense_ms", "{:.1f}"), ("dense_ratio", "{:.1f}"), ("ours_mb", "{:.0f}"), ("mask_mb", "{:.0f}"), ("dense_mb", "{:.0f}")]
    columns = [(name, how) for name, how in columns if name in rows[0]]
    print("| " + " | ".join(name for name, _ in columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(how.format(row[name]) for name, how in columns) + " |")


if __name__ == "__main__":
    main()
