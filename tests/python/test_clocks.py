"""weir.kernel_clocks: tables of plain buffers, from torch, numpy and others, and the example for Taichi."""
import array
import csv
import enum
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed")
try:
    import torch
except ImportError:
    torch = None

import weir

STAGES = ["load", "compute", "store"]
TICKS = [[1000, 3000, 0, -5], [2000, 4000, 100, 0], [500, 600, 1 << 40, 700]]


class Clocks(unittest.TestCase):
    def check(self, clocks):
        self.assertIsInstance(clocks, weir.KernelClocks)
        self.assertEqual([tuple(stage)[:7] for stage in clocks], [
            ("load", 2, 4000, 2000.0, 1000, 3000, 3000), ("compute", 3, 6100, 6100 / 3, 100, 4000, 100),
            ("store", 3, 1800, 600.0, 500, 700, 700)])
        self.assertAlmostEqual(clocks[0].share, 4000 / 11900)

    def test_buffers(self):
        ticks = np.array(TICKS)
        wide = np.zeros((3, 8), np.int64)
        wide[:, ::2] = ticks
        rows = memoryview(array.array("q", sum(TICKS, []))).cast("B").cast("q", (3, 4))
        for buffer in (ticks, wide[:, ::2], np.asfortranarray(ticks), rows):
            self.check(weir.kernel_clocks(buffer, STAGES))

    @unittest.skipUnless(torch, "torch is not installed")
    def test_tensors(self):
        ticks = torch.tensor(TICKS)
        for tensor in (ticks, ticks.T.contiguous().T, torch.stack([ticks, ticks])[1]):
            self.check(weir.kernel_clocks(tensor, STAGES))
        clocks = weir.kernel_clocks(ticks, STAGES)
        before = self.csv(clocks)
        ticks.zero_()
        self.assertEqual(self.csv(clocks), before, "the buffer may be reused")
        with self.assertRaisesRegex(TypeError, "int64, not torch.int32"):
            weir.kernel_clocks(ticks.int(), STAGES)

    def test_enum(self):
        """The values of an IntEnum are the rows of its stages, as the kernel uses them."""
        class Time(enum.IntEnum):
            load = 1
            compute = 2
            store = 3

        class Sparse(enum.IntEnum):
            store = 5
            load = 0

        class Plain(enum.Enum):
            load = "a"
            compute = "b"
            store = "c"
        rows = np.array([[99] * 4] + TICKS)
        for stages in (Time, list(Time), iter(Time)):
            clocks = weir.kernel_clocks(rows, stages)
            self.check(clocks)
            self.assertIn("4 iterations", clocks.table())
        self.assertEqual([row["ticks"] for row in self.csv(clocks) if row["iteration"]][:4], ["1000", "2000", "500", "3000"])
        if torch:
            self.check(weir.kernel_clocks(torch.tensor(rows), Time))
        field = type("Field", (), {"to_numpy": lambda self: rows}) # as Taichi's
        self.check(weir.kernel_clocks(field(), Time))
        self.check(weir.kernel_clocks(np.array(TICKS), Plain))
        self.check(weir.kernel_clocks(np.array(TICKS), ["load", Plain.compute, "store"]))
        sparse = weir.kernel_clocks(np.array([[1], [2], [3], [4], [5], [6]]), Sparse)
        self.assertEqual([(stage.stage, stage.ticks) for stage in sparse], [("store", 6), ("load", 1)])
        for ticks, text in ((np.array(TICKS), r"ticks must be \(4, iterations\), one row per value of Time up to 3, not of shape "
                                              r"\(3, 4\)"), (rows.T[:3], "pass ticks.T")):
            with self.assertRaisesRegex(ValueError, text):
                weir.kernel_clocks(ticks, Time)
        with self.assertRaisesRegex(ValueError, "from 0; <Below.load: -1> has none"):
            weir.kernel_clocks(rows, enum.IntEnum("Below", {"load": -1}))

    def csv(self, clocks):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "clocks.csv")
            clocks.export_csv(path)
            with open(path) as file:
                return list(csv.DictReader(file))

    def test_table_and_csv(self):
        clocks = weir.kernel_clocks(np.array(TICKS), STAGES, name="my \"kernel\"", ticks_per_ns=2)
        self.check(clocks)
        self.assertEqual(clocks[0].mean_ns, 1000.0)
        self.assertIsNone(weir.kernel_clocks(np.array(TICKS), STAGES)[0].mean_ns)
        self.assertIn('clocks inside my "kernel": 1 plain buffer, 4 iterations', clocks.table())
        self.assertIn("1 laps are negative", clocks.table())
        rows = self.csv(clocks)
        self.assertEqual([(row["kernel"], row["stage"]) for row in rows[:3]], [('my "kernel"', stage) for stage in STAGES])
        laps = [row for row in rows if row["iteration"]]
        self.assertEqual(len(laps), 12)
        for i, stage in enumerate(STAGES):
            got = [int(row["ticks"]) for row in laps if row["stage"] == stage]
            self.assertEqual(got, [ticks if 0 < ticks < 1 << 32 else 0 for ticks in TICKS[i]])
        self.assertEqual([row["mean_ns"] for row in laps[:3]], ["500.000", "1000.000", "250.000"])

    def test_refused(self):
        ticks = np.array(TICKS)
        for kind, text, call in (
                (ValueError, "pass ticks.T", lambda: weir.kernel_clocks(ticks.T, STAGES)),
                (ValueError, "with 2 stages, not of shape \\(3, 4\\)", lambda: weir.kernel_clocks(ticks, STAGES[:2])),
                (ValueError, "of shape \\(12,\\)", lambda: weir.kernel_clocks(ticks.ravel(), STAGES)),
                (ValueError, "1 to 32", lambda: weir.kernel_clocks(np.zeros((33, 1), np.int64), range(33))),
                (ValueError, "1 to 32", lambda: weir.kernel_clocks(np.zeros((0, 1), np.int64), [])),
                (ValueError, "ticks_per_ns", lambda: weir.kernel_clocks(ticks, STAGES, ticks_per_ns=0)),
                (ValueError, "ticks_per_ns", lambda: weir.kernel_clocks(ticks, STAGES, ticks_per_ns=float("nan"))),
                (TypeError, "int64", lambda: weir.kernel_clocks(ticks.astype(np.float64), STAGES)),
                (TypeError, "int64", lambda: weir.kernel_clocks(ticks.astype(">i8"), STAGES)),
                (TypeError, "tensor of int64, not list", lambda: weir.kernel_clocks(TICKS, STAGES)),
                (ValueError, "null", lambda: weir.kernel_clocks(ticks, STAGES, name="a\0b"))):
            with self.assertRaisesRegex(kind, text):
                call()
        empty = weir.kernel_clocks(np.zeros((3, 0), np.int64), STAGES)
        self.assertEqual([stage.laps for stage in empty], [0, 0, 0])

    @unittest.skipUnless(importlib.util.find_spec("quadrants"), "quadrants, a Taichi with clock_counter(), is not installed")
    def test_taichi(self):
        script = os.path.join(os.environ["WEIR_SOURCE"], "examples", "kernel_clock", "clocks_taichi.py")
        done = subprocess.run([sys.executable, script], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for stage in ("LineSearch", "UpdateGradient"):
            self.assertRegex(done.stdout, rf"(?m)^{stage} +64 ")
        self.assertNotIn("negative", done.stdout)


if __name__ == "__main__":
    unittest.main()
