"""Times the stages of a Taichi kernel with clocks inside it (docs/internals/kernel_clock.md): pip install quadrants

Quadrants is the Taichi of Genesis. Its clock_counter() works on CUDA, AMD GPUs, Vulkan and the CPU; Taichi 1.7 has none.
"""
import argparse
import sys
from enum import IntEnum

import numpy as np
import weir

try:
    import quadrants as ti
except ImportError:
    import taichi as ti
if not hasattr(ti, "clock_counter"):
    sys.exit(f"{ti.__name__} {'.'.join(map(str, ti.__version__))} has no clock_counter(): pip install quadrants")


class Time(IntEnum):
    LineSearch = 1
    UpdateConstraint = 2
    UpdateGradient = 3


@ti.kernel
def solve(x: ti.types.ndarray(dtype=ti.f32, ndim=2), times: ti.types.ndarray(dtype=ti.i64, ndim=2)):
    for b in range(x.shape[0]):         # in parallel; block 0 alone writes its times
        for it in range(times.shape[1]):
            start = ti.clock_counter()
            step = 0.0
            for i in range(x.shape[1]):
                step += ti.abs(x[b, i])
            x[b, 0] += 1e-6 * step
            end = ti.clock_counter()
            if b == 0:
                times[Time.LineSearch, it] = end - start
            start = end

            for i in range(x.shape[1]):
                x[b, i] = ti.max(x[b, i], -1.0)
            end = ti.clock_counter()
            if b == 0:
                times[Time.UpdateConstraint, it] = end - start
            start = end

            for i in range(x.shape[1]):
                x[b, i] -= 0.01 * ti.sin(x[b, i])
            end = ti.clock_counter()
            if b == 0:
                times[Time.UpdateGradient, it] = end - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=("cpu", "cuda", "vulkan"), default="cpu")
    parser.add_argument("--csv", metavar="FILE", help="also write the times of each iteration")
    arguments = parser.parse_args()
    ti.init(arch=getattr(ti, arguments.arch), log_level=ti.ERROR)
    times = np.zeros((max(Time) + 1, 64), np.int64)         # row 0 belongs to no stage
    solve(np.random.default_rng(0).standard_normal((16, 4096), np.float32), times)
    clocks = weir.kernel_clocks(times, Time, name="solve")  # clock_counter() counts cycles, so without ticks_per_ns
    print(clocks.table(), end="")
    if arguments.csv:
        clocks.export_csv(arguments.csv)


if __name__ == "__main__":
    main()
