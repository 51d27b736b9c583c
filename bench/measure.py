"""Two ways to do the same, measured in turns."""

import statistics
import time
from dataclasses import dataclass, field
from typing import Callable, Optional

# Workers of OpenMP spin for some milliseconds after their region and would take a core away.
PAUSE = 0.03


@dataclass
class Case:
    """The same work by the peer and by us. `flops` is the arithmetic of one call."""

    group: str
    name: str
    peer: Callable
    ours: Callable
    flops: float = 0.0
    check: Optional[Callable] = None
    repeats: int = 0
    labels: dict = field(default_factory=dict)


def seconds(call, loops):
    started = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - started) / loops


def measure(case, repeats, at_least):
    """Medians and minima in milliseconds, and their ratios, peer / ours."""
    if case.check:
        case.check()
    calls, times = (case.peer, case.ours), ([], [])
    loops = []
    for call in calls:
        call()
        once = seconds(call, 1)
        loops.append(max(1, round(at_least / max(once, 1e-7))))
        time.sleep(PAUSE)
    for _ in range(case.repeats or repeats):
        for call, count, found in zip(calls, loops, times):
            call()  # after the pause: threads awake, caches warm, for both alike
            found.append(seconds(call, count))
            time.sleep(PAUSE)
    peer, ours = ([1e3 * statistics.median(found), 1e3 * min(found)] for found in times)
    return {
        "group": case.group,
        "name": case.name,
        **case.labels,
        "peer_ms": peer[0],
        "ours_ms": ours[0],
        "peer_min_ms": peer[1],
        "ours_min_ms": ours[1],
        "ratio": peer[0] / ours[0],
        "ratio_min": peer[1] / ours[1],
        "gflops": case.flops / ours[0] / 1e6,
        "peer_gflops": case.flops / peer[0] / 1e6,
    }
