"""weir.kernel_clocks: evaluates the ticks that kernels not written in CUDA C++ store in a buffer."""
import array
import collections
import ctypes
import enum

from . import _arguments, _outputs, _weir

KernelStage = collections.namedtuple("KernelStage", "stage laps ticks mean_ticks min_ticks max_ticks last_ticks share "
                                     "mean_ns")
KernelStage.__doc__ = "A stage of a kernel: its laps, their ticks, its share of all ticks (0..1), ns or None."


class KernelClocks(list):
    """A list of KernelStage, in order."""

    def __init__(self, *reading):
        stages, self._table = _weir._kernel_clocks(*reading, False)
        super().__init__(KernelStage(*stage) for stage in stages)
        self._reading = reading

    def table(self):
        """The table of `weir report`."""
        return self._table

    def export_csv(self, path):
        """Writes one row per stage, then one per stage and iteration (docs/internals/kernel_clock.md)."""
        _outputs.write(_arguments.path("path", path), "csv", _weir._kernel_clocks(*self._reading, True))


def kernel_clocks(ticks, stages, *, name="kernel", ticks_per_ns=None):
    """Time of each stage of a kernel, from a buffer filled by the kernel.

        clocks = torch.zeros(3, 64, dtype=torch.int64, device="cuda")
        kernel[grid](x, y, clocks)                          # program 0 stores the ticks of each stage
        print(weir.kernel_clocks(clocks, ["load", "compute", "store"], ticks_per_ns=1).table())

    ticks         int64 (stages, iterations): differences of two readings of a clock; 0 where a stage did not run. A
                  torch tensor on any device, a numpy array, any buffer, or an object with to_numpy()
    stages        names of the stages, at most 32; or an IntEnum, or members of one, whose values are their rows of
                  ticks: with values from 1 to 6 ticks has 7 rows, and row 0 is ignored
    ticks_per_ns  1 for a clock in ns (%globaltimer); for cycles (clock64) the GPU's clock in GHz; None = unknown, which
                  omits ns
    """
    stages = tuple(stages)
    names = tuple(stage.name if isinstance(stage, enum.Enum) else str(stage) for stage in stages)
    if ticks_per_ns is not None and not 0 < ticks_per_ns < 1e9:
        raise ValueError(f"ticks_per_ns must be positive or None, not {ticks_per_ns!r}")
    data, shape = _int64(ticks)
    rows, wanted = range(len(names)), f"(stages, iterations) with {len(names)} stages"
    if stages and all(isinstance(stage, enum.IntEnum) for stage in stages):
        rows = [int(stage) for stage in stages]
        if min(rows) < 0:
            raise ValueError(f"stages: the value of an IntEnum is its stage's row, from 0; "
                             f"{stages[rows.index(min(rows))]!r} has none")
        wanted = f"({max(rows) + 1}, iterations), one row per value of {type(stages[0]).__name__} up to {max(rows)}"
    n = max(rows, default=-1) + 1
    if len(shape) != 2 or shape[0] != n:
        hint = "; pass ticks.T" if len(shape) == 2 and shape[1] == n else ""
        raise ValueError(f"ticks must be {wanted}, not of shape {shape}{hint}")
    if list(rows) != list(range(n)):
        data = sum((data[row * shape[1]:(row + 1) * shape[1]] for row in rows), array.array("q"))
    return KernelClocks(data, shape[1], names, str(name), ticks_per_ns or 0.0)


def _int64(ticks):
    """(copy as an array of int64, shape)"""
    if hasattr(ticks, "to_numpy"):  # arrays and fields of Taichi and its forks
        ticks = ticks.to_numpy()
    if hasattr(ticks, "data_ptr"):
        if str(ticks.dtype) != "torch.int64":
            raise TypeError(f"ticks must be int64, not {ticks.dtype}")
        shape, ticks = tuple(ticks.shape), ticks.detach().cpu().contiguous()
        return array.array("q", ctypes.string_at(ticks.data_ptr(), 8 * ticks.numel()) if ticks.numel() else b""), shape
    try:
        view = memoryview(ticks)
    except TypeError:
        raise TypeError(f"ticks must be an array or a tensor of int64, not {type(ticks).__name__}") from None
    if view.format not in ("q", "l", "<q", "<l", "@q", "@l"):
        raise TypeError(f"ticks must be int64, not of format {view.format!r}")
    return array.array("q", view.tobytes()), tuple(view.shape)
