"""weir.profile with PyTorch: its operators and record_function, on one clock with Weir's ranges."""
import json
import os
import subprocess
import sys
import threading
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed")
from torch.profiler import record_function

import weir
from test_profile import Profiles

CPU = [weir.ProfilerActivity.CPU]
KINETO = torch.autograd.kineto_available()


class Torch(Profiles):
    def setUp(self):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.Linear(10, 10))
        self.input = torch.randn(64, 10)
        methods = record_function.__enter__, record_function.__exit__
        self.addCleanup(lambda: self.assertEqual((record_function.__enter__, record_function.__exit__), methods))

    def rows(self, prof, *arguments):
        return {row.key: row for row in prof.key_averages(*arguments)}

    def counts(self, prof):
        return {row.key: row.count for row in prof.key_averages()}

    def other_thread(self, name="there"):
        def work():
            with record_function(name):
                torch.ones(3)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


class Operators(Torch):
    def test_in_place_of_torch(self):
        with self.warned(), weir.profile(activities=[torch.profiler.ProfilerActivity.CPU,
                                                     torch.profiler.ProfilerActivity.CUDA]) as prof:
            self.model(self.input)
        rows = self.rows(prof)
        self.assertEqual([rows[name].count for name in ("aten::linear", "aten::addmm")], [2, 2])
        self.assertGreaterEqual(rows["aten::linear"].cpu_time_total, rows["aten::addmm"].cpu_time_total)
        self.assertGreater(rows["aten::addmm"].self_cpu_time_total, 0)
        table = prof.key_averages().table(sort_by="cpu_time_total").splitlines()
        self.assertIn("aten::linear", table[3])
        self.assertNotIn("weir.profile", rows)
        events = self.ranges(prof, "aten::addmm")
        self.assertEqual({(event["cat"], event["pid"], event["tid"]) for event in events},
                         {("cpu_op", os.getpid(), threading.get_native_id())})
        with weir.profile(activities=CPU, operators=False) as prof:
            self.model(self.input)
        self.assertEqual(self.counts(prof), {})

    def test_in_windows(self):
        """Operators belong to the steps that the schedule records, and to the ranges around them."""
        windows = []
        with weir.profile(activities=CPU, schedule=weir.schedule(wait=1, warmup=1, active=2, repeat=2),
                          on_trace_ready=lambda prof: windows.append((self.counts(prof), self.ranges(prof)))) as prof:
            for _ in range(9):
                with weir.stage("forward"), weir.record_function("mine"):
                    self.model(self.input)
                with weir.record_function("end"), record_function("torch's"):
                    torch.ones(2)
                prof.step()
        self.assertEqual(len(windows), 2)
        for counts, ranges in windows:
            self.assertEqual([counts[name] for name in ("aten::linear", "forward", "mine", "end", "torch's", "ProfilerStep*")],
                             [4, 2, 2, 2, 2, 2])
            times = {}
            for event in ranges:
                start = round(event["ts"] * 1000)
                times.setdefault(event["name"], []).append((start, start + round(event["dur"] * 1000)))
            for outer, inner in (("forward", "aten::linear"), ("end", "torch's"), ("mine", "aten::addmm")):
                for begins, ends in times[inner]: # torch without Kineto counts in us
                    self.assertTrue(any(a - 1000 <= begins and ends <= b + 1000 for a, b in times[outer]), (outer, inner, times))

    def test_every_change_of_action(self):
        """Whatever the schedule does, a window has the operators of its own steps, and nothing of torch's remains on."""
        for letters in ("0123", "0003", "1333", "2100", "2133", "0030", "1230", "2221", "3131"):
            seen = []

            def ready(prof):
                seen.append((self.steps(prof), self.counts(prof).get("aten::ones", 0)))
            with self.warned(), weir.profile(activities=CPU, on_trace_ready=ready,
                                             schedule=lambda step: int((letters + "0" * 9)[step])) as prof:
                for _ in range(6):
                    torch.ones(2)
                    prof.step()
            for steps, n in seen:
                self.assertEqual(n, len(steps), (letters, seen))
            self.assertFalse(torch.autograd._profiler_enabled(), letters)

    def test_nothing_changes(self):
        def run():
            torch.manual_seed(1)
            with record_function("all") as inside:
                self.assertIsInstance(inside, record_function)
                loss = self.model(torch.randn(4, 10)).square().sum()
                gradients = torch.autograd.grad(loss, list(self.model.parameters()))
            return [loss, *gradients, torch.rand(3)]
        expected = run()
        with weir.profile(activities=CPU, record_shapes=True, profile_memory=True, with_stack=True):
            for value, wanted in zip(run(), expected):
                self.assertTrue(torch.equal(value, wanted))
            scripted = torch.jit.script(with_range)
            self.assertEqual(scripted(torch.ones(2)).tolist(), [2.0, 2.0])
            with self.assertRaisesRegex(KeyError, "mine"), record_function("raises"):
                raise KeyError("mine")

    def test_shapes_and_memory(self):
        with weir.profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
            self.model(self.input)
        shapes = {row.input_shapes for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::addmm"}
        self.assertEqual(shapes, {"[[10], [64, 10], [10, 10], [], []]"})
        self.assertEqual(self.rows(prof)["aten::addmm"].cpu_memory_usage, 2 * 64 * 10 * 4)

    def test_flops(self):
        with weir.profile(activities=CPU, with_flops=True) as prof:
            self.model(self.input)
            torch.ones(1000) * torch.ones(1000)
        rows = self.rows(prof)
        self.assertEqual([rows[name].flops for name in ("aten::addmm", "aten::mul", "aten::linear")], [2 * 12800, 1000, 0])
        table = prof.key_averages().table(sort_by="cpu_time_total").splitlines()
        self.assertRegex(table[1], "Total KFLOPs  $")
        (line,) = [line for line in table if " aten::addmm " in line]
        self.assertRegex(line, r" 25\.600  $")
        path = self.path("flops.json")
        prof.export_chrome_trace(path)
        averages = self.report(path, "--json")["traces"][0]["averages"]
        self.assertEqual({row["name"]: row["flops"] for row in averages if "flops" in row},
                         {"aten::addmm": 25600, "aten::mul": 1000})

    @unittest.skipUnless(KINETO, "this torch is built without Kineto")
    def test_python_functions(self):
        with weir.profile(activities=CPU, with_stack=True) as prof:
            self.model(self.input)
        names = {event["name"] for event in self.ranges(prof) if event["cat"] == "python_function"}
        self.assertIn("nn.Module: Linear_0", names)
        stacks = {row.stack for row in prof.key_averages(group_by_stack_n=3) if row.key == "aten::addmm"}
        self.assertEqual(len(stacks), 1)
        self.assertRegex(stacks.pop(), r"linear\.py\(\d+\): forward;.*_call_impl$")
        with weir.profile(activities=CPU, with_stack=True) as prof:
            torch.ones(2)
        stacks = [row.stack for row in prof.key_averages(group_by_stack_n=100) if row.key == "aten::ones"]
        self.assertRegex(stacks[0], r"^<built-in method ones.*;.*[^;]$")

    def test_torchs_profiler_at_the_same_time(self):
        with self.warned(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
            with self.warned() as seen, weir.profile(activities=CPU) as prof:
                with record_function("mine"):
                    self.model(self.input)
        self.assertEqual([str(w.message) for w in seen], ["PyTorch operators are not recorded: torch.profiler is recording in this "
                                                          "process; use one at a time"])
        self.assertEqual([w.filename for w in seen], [__file__])
        self.assertEqual(self.counts(prof), {"mine": 1})
        self.assertIn("aten::linear", {row.key for row in theirs.key_averages()})
        with weir.profile(activities=CPU, operators=False) as prof:
            with self.warned(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
                with record_function("mine"):
                    self.model(self.input)
        self.assertEqual(self.counts(prof), {"mine": 1})
        self.assertIn("aten::linear", {row.key for row in theirs.key_averages()})

    def test_second_profile(self):
        with self.warned() as seen, weir.profile(activities=CPU, schedule=weir.schedule(wait=0, warmup=1, active=1)) as prof:
            with self.assertRaisesRegex(weir.Error, "already has an open profiler"):
                weir.profile(activities=CPU).start()
            prof.step()
            self.model(self.input)
            prof.step()
        self.assertEqual((self.counts(prof)["aten::linear"], [str(w.message) for w in seen]), (2, []))
        left = weir.profile(activities=CPU)
        left.start()
        del left # without stop()
        with weir.profile(activities=CPU) as prof:
            self.model(self.input)
        self.assertEqual(self.counts(prof)["aten::linear"], 2)

    def test_stop_on_another_thread(self):
        prof = weir.profile(activities=CPU)
        prof.start()
        with self.warned() as seen:
            thread = threading.Thread(target=prof.stop)
            thread.start()
            thread.join()
        self.assertEqual([str(w.message) for w in seen], [
            "PyTorch operators are not recorded: stop() was called on another thread than start(), where torch's profiler is "
            "still on"])
        with self.warned() as seen, weir.profile(activities=CPU) as prof:
            self.model(self.input)
        self.assertEqual((self.counts(prof)["aten::linear"], len(seen)), (2, 0))
        self.assertFalse(torch.autograd._profiler_enabled())

    def test_exit_without_stop(self):
        code = ("import torch, weir\nprof = weir.profile(activities=[weir.ProfilerActivity.CPU])\nprof.start()\n"
                "torch.ones(3)\nif {}: raise SystemExit(3)")
        for raises, status in ((False, 0), (True, 3)):
            done = subprocess.run([sys.executable, "-c", code.format(raises)], capture_output=True, text=True)
            self.assertEqual((done.returncode, "Traceback" in done.stderr), (status, False), done.stderr)

    def test_torchs_errors(self):
        for method in ("prepare_trace", "start_trace", "stop_trace", "export_chrome_trace"):
            if method == "export_chrome_trace" and not KINETO:
                continue

            def fail(self_, *arguments, done=getattr(torch.profiler._KinetoProfile, method)):
                if method in ("start_trace", "stop_trace"):
                    done(self_)
                raise RuntimeError("it fails\nhere")
            with self.warned() as seen, mock.patch.object(torch.profiler._KinetoProfile, method, fail):
                with weir.profile(activities=CPU) as prof, weir.record_function("mine"):
                    self.model(self.input)
            self.assertEqual([str(w.message) for w in seen], ["PyTorch operators are not recorded: it fails"], method)
            self.assertEqual(self.counts(prof), {"mine": 1}, method)
            self.assertFalse(torch.autograd._profiler_enabled(), method)


class Ranges(Torch):
    """torch.profiler.record_function under weir.profile."""

    def test_other_threads(self):
        for operators in (True, False):
            with weir.profile(activities=CPU, operators=operators) as prof:
                with record_function("here"):
                    self.other_thread()
                self.other_thread()
            counts = self.counts(prof)
            self.assertEqual((counts["here"], counts["there"]), (1, 2), operators)
            self.assertEqual({event["cat"] for event in self.ranges(prof, "there")}, {"user_annotation"})
            self.assertNotIn(threading.get_native_id(), {event["tid"] for event in self.ranges(prof, "there")})
            self.assertTrue(all(row.is_user_annotation for row in prof.key_averages() if row.key in ("here", "there")))

    def test_across_the_ends(self):
        """A range that is open when a profile begins or ends disturbs neither it nor the next one."""
        first, second = record_function("first"), record_function("second")
        prof = weir.profile(activities=CPU, operators=False)
        first.__enter__()
        prof.start()
        first.__exit__(None, None, None)
        with weir.record_function("first"):
            pass
        second.__enter__()
        prof.stop()
        second.__exit__(None, None, None)
        self.assertEqual(self.counts(prof), {"first": 1, "second": 1})
        with weir.profile(activities=CPU, operators=False) as prof:
            for name in ("", "a\0b"):
                with self.assertRaises(ValueError):
                    weir.record_function(name)
            with record_function(""):
                self.other_thread("other")
        self.assertEqual(self.counts(prof), {"other": 1})

    def test_decorator_and_stacks(self):
        @record_function("decorated")
        def inner():
            return 3
        with weir.profile(activities=CPU, operators=False, with_stack=True) as prof:
            self.assertEqual(inner(), 3)
            with record_function("block"):
                pass
        (event,) = self.ranges(prof, "block")
        self.assertRegex(event["args"]["Call stack"].split(";")[0], r"test_operators\.py\(\d+\): Ranges\.test_decorator_and_stacks$")
        self.assertEqual(self.counts(prof)["decorated"], 1)


def with_range(value: torch.Tensor) -> torch.Tensor:
    with torch.profiler.record_function("scripted"):
        return value * 2


class Merged(Torch):
    """A file of torch's, with a GPU, is added to a window."""

    def merge(self, events, **members):
        with weir.profile(activities=CPU, operators=False) as prof, weir.record_function("around"):
            pass
        before = self.trace(prof)
        (around,) = [event for event in before["traceEvents"] if event["name"] == "around"]
        path = self.path("torch.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"baseTimeNanoseconds": before["baseTimeNanoseconds"], **members, "traceEvents": events(around)}, file)
        prof._trace.merge(path)
        return prof, around

    def test_gpu(self):
        def events(around):
            at = {"ph": "X", "pid": os.getpid(), "tid": around["tid"], "ts": around["ts"], "dur": around["dur"]}
            ends = around["ts"] + around["dur"]
            kernel = dict(at, cat="kernel", name="gemm", pid=0, tid=7, ts=ends + 5000, dur=3.5)
            return [dict(at, cat="cpu_op", name="aten::mm", args={"External id": 5, "Ev Idx": 1, "Sequence number": 3}),
                    dict(at, cat="cuda_runtime", name="cudaLaunchKernel", args={"External id": 5, "correlation": 9}),
                    dict(kernel, args={"External id": 5, "correlation": 9, "stream": 7, "device": 0}),
                    dict(at, cat="cpu_op", name="late", ts=ends + 10000), dict(at, cat="cpu_op", name="early", ts=0, dur=1)]
        prof, around = self.merge(events, deviceProperties=[{"id": 0, "name": "A GPU", "numSms": 132}])
        rows = self.rows(prof)
        self.assertEqual((rows["aten::mm"].cuda_time_total, rows["gemm"].cuda_time_total), (3.5, 3.5))
        self.assertEqual(set(rows), {"around", "aten::mm", "cudaLaunchKernel", "gemm"})
        trace = self.trace(prof)
        self.assertEqual(trace["deviceProperties"], [{"id": 0, "name": "A GPU", "numSms": 132}])
        (kernel,) = [event for event in trace["traceEvents"] if event["name"] == "gemm"]
        self.assertEqual((kernel["args"]["stream"], kernel["args"]["correlation"], kernel["pid"]), (7, 9, 0))
        (operator,) = [event for event in trace["traceEvents"] if event["name"] == "aten::mm"]
        self.assertEqual(operator["args"], {"External id": kernel["args"]["External id"], "Sequence number": 3})
        self.assertEqual(len([event for event in trace["traceEvents"] if event.get("cat") == "ac2g"]), 2)

    def test_cut_to_the_window(self):
        def events(around):
            return [{"ph": "X", "pid": os.getpid(), "tid": around["tid"], "cat": "python_function", "name": "whole",
                     "ts": around["ts"] - 1e6, "dur": around["dur"] + 2e6}]
        prof, around = self.merge(events)
        (whole,) = self.ranges(prof, "whole")
        (window,) = [event for event in self.trace(prof)["traceEvents"] if event.get("cat") == "Trace"]
        self.assertEqual((whole["ts"], whole["dur"]), (window["ts"], window["dur"]))

    def test_before_the_window(self):
        """Clocks may differ by some us: what torch recorded before the window is recognised by its mark."""
        def events(around):
            at = {"ph": "X", "pid": os.getpid(), "tid": around["tid"], "cat": "cpu_op", "dur": 0.001}
            ts = around["ts"]
            return [dict(at, name="aten::zeros", ts=ts), dict(at, name="weir.profile", cat="user_annotation", ts=ts + 0.002),
                    dict(at, name="aten::mm", ts=ts + 0.004), dict(at, name="weir.profile", cat="user_annotation", ts=ts + 0.006),
                    dict(at, name="frame", cat="python_function", ts=ts, dur=0.008)]
        prof, _ = self.merge(events)
        names = sorted(event["name"] for event in self.ranges(prof) if event["name"] != "around")
        self.assertEqual(names, ["aten::mm", "frame", "weir.profile"])

    def test_hostile(self):
        for number in (-3.9e15, 3.9e15, -5):
            prof, _ = self.merge(lambda around, number=number: [
                {"ph": "X", "pid": 1, "tid": 1, "cat": "kernel", "name": "k", "ts": number, "dur": 3.9e15},
                {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "name": "c", "ts": number, "dur": number}])
            self.assertTrue(self.trace(prof))
            self.assertEqual(self.counts(prof), {"around": 1})
        with self.assertRaisesRegex(weir.Error, "cannot be added: "):
            self.merge(lambda around: [{"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "name": "c", "ts": 1, "dur": 1}],
                       baseTimeNanoseconds=-(1 << 63))


class TooFewSteps(Profiles):
    def test_message(self):
        schedules = [weir.schedule(wait=80, warmup=3, active=1, repeat=1), torch.profiler.schedule(wait=80, warmup=3, active=1)]
        for schedule in schedules:
            with weir.profile(activities=CPU, schedule=schedule) as prof:
                for _ in range(10):
                    prof.step()
            for call in (lambda: prof.export_chrome_trace(self.path("few.json")), prof.key_averages):
                with self.assertRaises(weir.Error) as raised:
                    call()
                self.assertEqual(str(raised.exception), "nothing was recorded, because the program made only 10 steps, and the "
                                 "schedule's first window ends after 84; call step() more often, or use a shorter schedule")
        self.assertFalse(os.path.exists(self.path("few.json")))

    def test_warning(self):
        """With a handler no call fails, so a warning says that it was not called."""
        for steps, wanted in ((3, 1), (4, 0)):
            with self.warned() as seen, weir.profile(activities=CPU, on_trace_ready=lambda prof: None, operators=False,
                                                     schedule=weir.schedule(wait=2, warmup=1, active=1)) as prof:
                for _ in range(steps - 1):
                    prof.step()
            self.assertEqual(len([w for w in seen if "made only" in str(w.message)]), wanted)

    def test_other_reasons(self):
        prof = weir.profile(activities=CPU, schedule=lambda step: 0)
        with self.assertRaisesRegex(weir.Error, "the profile was not started"):
            prof.key_averages()
        with prof, self.assertRaisesRegex(weir.Error, "no window has ended; stop the profile first"):
            prof.key_averages()
        with self.assertRaisesRegex(weir.Error, "made only 0 steps, .* ends later"):
            prof.key_averages()


if __name__ == "__main__":
    unittest.main()
