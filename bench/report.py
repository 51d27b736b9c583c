"""Results as the tables of bench/README.md."""

import math


def geometric_mean(numbers):
    numbers = list(numbers)
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else float("nan")


def milliseconds(x):
    return f"{x:.2f}" if x < 10 else f"{x:.0f}"


def shapes(rows):
    """One row for each T and D: how many times faster, and our milliseconds."""
    cells = {}
    for row in rows:
        if row["group"] in ("dense", "causal"):
            key = (row["group"], row["direction"])
            cells.setdefault((row["t"], row["d"]), {})[key] = row
    if not cells:
        return []
    columns = [(g, d) for g in ("dense", "causal") for d in ("forward", "both")]
    titles = [f"{g} {d.replace('both', 'fwd + bwd')}" for g, d in columns]
    lines = ["| T | D | " + " | ".join(titles) + " |", "|--:|--:|" + "--:|" * len(columns)]
    for (t, d), found in sorted(cells.items()):
        texts = [
            f"{found[c]['ratio']:.2f}× ({milliseconds(found[c]['ours_ms'])} ms)"
            if c in found else "–"
            for c in columns
        ]
        lines.append(f"| {t} | {d} | " + " | ".join(texts) + " |")
    return lines + [""]


def others(rows):
    """One row for each other case."""
    rows = [row for row in rows if row["group"] in ("window", "additive", "gat")]
    if not rows:
        return []
    lines = ["| | PyTorch ms | Regard ms | |", "|---|--:|--:|--:|"]
    for row in rows:
        peer, ours = milliseconds(row["peer_ms"]), milliseconds(row["ours_ms"])
        lines.append(f"| {row['name']} | {peer} | {ours} | **{row['ratio']:.1f}×** |")
    return lines + [""]


def summary(rows, machine):
    """Means, the worst shape, the part of the machine's peak."""
    lines = []
    dots = [row for row in rows if row["group"] in ("dense", "causal")]
    for direction, name in (("forward", "forward"), ("both", "forward + backward")):
        some = [row for row in dots if row["direction"] == direction]
        if some:
            worst = min(some, key=lambda row: row["ratio"])
            mean = geometric_mean(row["ratio"] for row in some)
            least = geometric_mean(row["ratio_min"] for row in some)
            lines.append(
                f"- {name}: {mean:.2f}× PyTorch as a geometric mean over {len(some)} shapes "
                f"({least:.2f}× with minima instead of medians); worst {worst['ratio']:.2f}× ({worst['name']})"
            )
    long = [r for r in dots if r["group"] == "dense" and r["direction"] == "forward"
            and r["t"] >= 2048 and r["d"] >= 64]
    for row in long:
        part = 100 * row["gflops"] / machine["peak_gflops"]
        lines.append(
            f"- {row['name']}: {row['gflops']:.0f} GFLOP/s, {part:.0f} % of the FMA peak "
            f"(PyTorch {row['peer_gflops']:.0f})"
        )
    for row in rows:
        if row["group"] == "doubling":
            lines.append(f"- {row['name']}: {row['ratio']:.2f}× the time")
    return lines


def markdown(rows, machine):
    head = (
        f"{machine['cpu']}, {machine['threads']} threads, {machine['isa']}, FMA peak "
        f"{machine['peak_gflops']:.0f} GFLOP/s; PyTorch {machine['torch']}; float32; "
        "medians, in one process, in turns. × is PyTorch's time by ours."
    )
    return "\n".join([head, "", *shapes(rows), *others(rows), *summary(rows, machine)])
