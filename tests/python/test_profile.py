"""weir.profile: recorded steps, contents of a trace, averages, each keyword, and torch.profiler's semantics."""
import contextlib
import gzip
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import unittest
import warnings
from unittest import mock

import common
import weir

HAS_TORCH = importlib.util.find_spec("torch") is not None
WAIT = "enumerate(DataLoader)#WeirLoader.__next__"


def read(path):
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        return json.load(file)


class Profiles(common.Data):
    def path(self, name):
        return os.path.join(self.work, name)

    def trace(self, prof, name="trace.json"):
        path = self.path(name)
        prof.export_chrome_trace(path)
        return read(path)

    def ranges(self, prof, name=None):
        """The X events of the last window, except the window's own."""
        events = [event for event in self.trace(prof)["traceEvents"] if event["ph"] == "X" and event["cat"] != "Trace"]
        return events if name is None else [event for event in events if event["name"] == name]

    def steps(self, prof):
        return [int(event["name"][13:]) for event in self.ranges(prof) if event["name"].startswith("ProfilerStep#")]

    def report(self, path, *options):
        text = subprocess.run([os.environ["WEIR_PROGRAM"], "report", path, *options], check=True, capture_output=True,
                              text=True).stdout
        return json.loads(text) if "--json" in options else text

    @contextlib.contextmanager
    def warned(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield seen


class Steps(Profiles):
    CASES = [dict(wait=1, warmup=1, active=2, repeat=1, skip_first=1), dict(wait=1, warmup=1, active=3, repeat=2),
             dict(wait=0, warmup=0, active=1), dict(wait=0, warmup=1, active=2), dict(wait=2, warmup=1, active=2),
             dict(wait=1, warmup=3, active=2), dict(wait=9, warmup=1, active=1)]

    def test_schedule(self):
        for wait, warmup, active, repeat, skip in itertools.product((0, 2), (1, 2), (1, 3), (0, 2), (0, 3)):
            made = weir.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip)
            for step in range(30):
                at = step - skip
                cycle, within = divmod(at, wait + warmup + active)
                wanted = (0 if at < 0 or (repeat and cycle >= repeat) or within < wait else
                          1 if within < wait + warmup else 3 if within == wait + warmup + active - 1 else 2)
                self.assertIs(made(step), weir.ProfilerAction(wanted), (made, step))
        made = weir.schedule(wait=3, warmup=1, active=1, skip_first_wait=1)
        self.assertEqual([made(step).value for step in range(7)], [1, 3, 0, 0, 0, 1, 3])

    def run_loop(self, module, schedule, steps):
        log = []
        with self.warned() as seen, module.profile(
                activities=[module.ProfilerActivity.CPU], schedule=schedule,
                on_trace_ready=lambda prof: log.append((prof.step_num, prof.current_action.name))) as prof:
            for _ in range(steps):
                prof.step()
        # Newer torch warns once per process that each cycle clears its events; weir.profile, if no window was delivered.
        return log, len([w for w in seen if issubclass(w.category, (UserWarning, RuntimeWarning))
                         and not re.search("clears events|nothing was recorded", str(w.message))])

    def test_handler_of_newer_torch(self):
        """torch 2.15's tensorboard_trace_handler passes one more argument to export_chrome_trace."""
        path = os.path.join(self.work, "more.json")
        with weir.profile(activities=[weir.ProfilerActivity.CPU],
                          on_trace_ready=lambda prof: prof.export_chrome_trace(path, use_python_export=False)):
            with weir.record_function("work"):
                pass
        self.assertTrue(os.path.exists(path))

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_as_torch(self):
        import torch.profiler
        for case in self.CASES:
            with self.warned():
                schedules = [module.schedule(**case) for module in (torch.profiler, weir)]
            for steps in (0, 1, 3, 5, 9):
                logs = [self.run_loop(module, schedule, steps)
                        for module, schedule in zip((torch.profiler, weir), schedules)]
                self.assertEqual(*logs, (case, steps))
        for letters in ("0123", "1000", "2000", "2133", "3312", "0030", "1230", "2221"):
            logs = [self.run_loop(module, lambda step, m=module: m.ProfilerAction(int((letters + "0" * 9)[step])), 6)
                    for module in (torch.profiler, weir)]
            self.assertEqual(*logs, letters)

    def test_steps_in_windows(self):
        windows = []
        with weir.profile(schedule=weir.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1),
                          on_trace_ready=lambda prof: windows.append((prof.step_num, self.steps(prof)))) as prof:
            for _ in range(12):
                prof.step()
        self.assertEqual(windows, [(5, [3, 4]), (9, [7, 8])])
        self.assertEqual(self.steps(prof), [7, 8])
        self.assertEqual((prof.step_num, prof.current_action), (12, weir.ProfilerAction.NONE))
        with weir.profile(schedule=weir.schedule(wait=1, warmup=1, active=5)) as prof:
            for _ in range(3):
                prof.step()
        self.assertEqual(self.steps(prof), [2, 3], "a step that is open at the end is included")
        with weir.profile() as prof:
            prof.step()
        self.assertEqual((self.steps(prof), prof.step_num), ([], 1), "without a schedule there are no steps")

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_torchs_schedule_and_handler(self):
        import torch.profiler
        folder = self.path("by-torch")
        with weir.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CPU],
                          schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1),
                          on_trace_ready=torch.profiler.tensorboard_trace_handler(folder, "worker")) as prof:
            for _ in range(4):
                prof.step()
        self.assertEqual(self.steps(prof), [2])
        (name,) = os.listdir(folder)
        self.assertRegex(name, r"^worker\.\d+\.pt\.trace\.json$")

    def test_start_and_stop(self):
        prof = weir.profile(schedule=weir.schedule(wait=0, warmup=1, active=2))
        with self.assertRaisesRegex(weir.Error, "not running"):
            prof.step()
        with self.assertRaisesRegex(weir.Error, "not started"):
            prof.key_averages()
        prof.stop()
        prof.start()
        with self.assertRaisesRegex(weir.Error, "already running"):
            prof.start()
        with self.assertRaisesRegex(weir.Error, "already has an open profiler"):
            weir.profile().start()
        prof.step()
        prof.stop()
        prof.stop()
        self.assertEqual(self.steps(prof), [1])
        prof.start() # resumes in the step in which it stopped, like torch
        prof.step()
        prof.stop()
        self.assertEqual(self.steps(prof), [1, 2])

    def test_callback(self):
        def fail(prof):
            for call in (prof.step, prof.stop):
                with self.assertRaisesRegex(weir.Error, "on_trace_ready"):
                    call()
            raise KeyError("mine")
        prof = weir.profile(schedule=weir.schedule(wait=0, warmup=1, active=1), on_trace_ready=fail)
        prof.start()
        prof.step()
        with self.assertRaisesRegex(KeyError, "mine"):
            prof.step()
        prof.on_trace_ready = None
        prof.step()
        prof.stop()
        self.assertEqual(self.steps(prof), [3])
        with self.assertRaises(ZeroDivisionError), weir.profile() as prof:
            1 / 0
        self.assertTrue(self.trace(prof))

    def test_averages_outlive_the_window(self):
        kept = []
        with weir.profile(schedule=weir.schedule(wait=0, warmup=1, active=1),
                          on_trace_ready=lambda prof: kept.append(prof.key_averages())) as prof:
            for i in range(6):
                with weir.record_function(f"part {i}"):
                    pass
                prof.step()
        del prof
        names = [[row.key for row in averages if row.key.startswith("part")] for averages in kept]
        self.assertEqual(names, [["part 1"], ["part 3"], ["part 5"]])
        self.assertIn("part 1", kept[0].table())

    def test_fork(self):
        with weir.profile() as prof:
            child = os.fork()
            if child == 0:
                try:
                    prof.step()
                    prof.stop()
                    with weir.profile() as other, weir.record_function("child"):
                        pass
                    os._exit(0 if [row.key for row in other.key_averages()] == ["child"] else 1)
                finally:
                    os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            with weir.record_function("parent"):
                pass
        self.assertEqual([row.key for row in prof.key_averages()], ["parent"])


class Ranges(Profiles):
    def recorded(self, function):
        with weir.profile() as prof:
            function()
        return {row.key: row.count for row in prof.key_averages()}

    def test_with_and_decorator(self):
        @weir.record_function("decorated")
        def double(value, *, plus=0):
            """Twice."""
            with weir.record_function("inner"):
                return 2 * value + plus if value < 4 else double(value - 1)
        self.assertEqual(double(3, plus=1), 7)
        self.assertEqual((double.__name__, double.__doc__), ("double", "Twice."))

        def work():
            double(5)
            with self.assertRaises(ZeroDivisionError), weir.record_function("raises"):
                1 / 0
            for target in (double, double):
                thread = threading.Thread(target=target, args=(1,))
                thread.start()
                thread.join()
        self.assertEqual(self.recorded(work), {"decorated": 5, "inner": 5, "raises": 1})
        self.assertNotIn("decorated", weir.table())

    def test_left_in_another_order(self):
        first, second, third = map(weir.record_function, ("first", "second", "third"))

        def work():
            third.__exit__()
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            second.__exit__(None, None, None)
            with third:
                threading.Thread(target=third.__exit__).start()
        self.assertEqual(self.recorded(work), {"first": 1, "third": 1})

    def test_deep(self):
        def nest(depth):
            with weir.record_function("deep"):
                if depth > 1:
                    nest(depth - 1)
        with weir.profile() as prof:
            nest(100)
            with weir.record_function("after"):
                pass
        self.assertEqual(len(self.ranges(prof, "deep")), 64)
        self.assertEqual(len(self.ranges(prof, "after")), 1)

    def test_open_at_the_end_and_names(self):
        with weir.profile() as prof:
            weir.record_function("开 \"quoted\"").__enter__()
        (event,) = self.ranges(prof)
        self.assertEqual((event["name"], event["cat"]), ("开 \"quoted\"", "user_annotation"))
        self.assertEqual(event["args"]["finished"], "false")
        for name in ("", "a\0b"):
            with self.assertRaises(ValueError):
                weir.record_function(name)
        for call in (lambda: weir.record_function(3), lambda: weir.record_function("a")(),
                     lambda: weir.record_function("a")(len, len)):
            with self.assertRaises(TypeError):
                call()


class Recorded(Profiles):
    """Contents of the trace of a loop over a loader."""

    def run_loop(self, steps=5, **options):
        with weir.Loader(self.data, batch_size=4, num_workers=2, seed=3) as loader, weir.profile(
                activities=[weir.ProfilerActivity.CPU], schedule=weir.schedule(wait=1, warmup=1, active=2, repeat=1),
                **options) as prof:
            for _, batch in zip(range(steps), itertools.chain(loader, loader)):
                with weir.stage("20_train_forward_pass"), weir.record_function("augment"):
                    del batch
                prof.step()
        return prof

    def test_trace(self):
        prof = self.run_loop()
        file = self.trace(prof)
        events = file["traceEvents"]
        mine = {event["name"] for event in self.ranges(prof) if event["tid"] == threading.get_native_id()}
        self.assertLessEqual({"ProfilerStep#2", "ProfilerStep#3", WAIT, "20_train_forward_pass", "augment"}, mine)
        workers = {event["tid"] for event in self.ranges(prof, "03b_image_decode")}
        self.assertNotIn(threading.get_native_id(), workers)
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        for tid in workers:
            self.assertRegex(names[tid], "weir-w")
        for step, wait, stage, augment in zip(*(
                [event for event in self.ranges(prof) if event["name"].startswith(name)]
                for name in ("ProfilerStep#", WAIT, "20_train_forward_pass", "augment"))):
            for outer, inner in ((step, wait), (step, stage), (stage, augment)):
                self.assertLessEqual(outer["ts"], inner["ts"])
                self.assertGreaterEqual(outer["ts"] + outer["dur"], inner["ts"] + inner["dur"])
        self.assertEqual(file["weir_workers"], 2)
        self.assertFalse({"record_shapes", "profile_memory", "with_stack", "with_flops"} & set(file))
        self.assertFalse([event for event in self.ranges(prof) if {"Call stack", "Input Dims"} & set(event.get("args", {}))])

    def test_counters(self):
        for _ in range(100): # sampled about every ms, so a short window may contain none
            events = self.trace(self.run_loop())["traceEvents"]
            found = {event["name"] for event in events if event["ph"] == "C"}
            if found:
                break
        self.assertEqual(found, {"batches ready", "busy workers", "bytes in flight"})

    def test_averages_are_those_of_the_report(self):
        prof = self.run_loop(record_shapes=True, profile_memory=True, with_stack=True)
        path = self.path("averages.json")
        prof.export_chrome_trace(path)
        for by_shape, frames in ((False, 0), (True, 0), (False, 2), (True, 1)):
            options = ["--group-by-input-shape"] * by_shape + (["--group-by-stack", str(frames)] if frames else [])
            averages = prof.key_averages(by_shape, frames)
            rows = self.report(path, "--json", *options)["traces"][0]["averages"]
            self.assertEqual(len(rows), len(averages))
            fields = {"self_cpu_time_total": "self_cpu_ns", "cpu_time_total": "cpu_ns",
                      "self_cpu_memory_usage": "self_cpu_bytes", "cpu_memory_usage": "cpu_bytes", "count": "count",
                      "key": "name", "is_user_annotation": "annotation"}
            fields.update({"input_shapes": "shapes"} if by_shape else {})
            fields.update({"stack": "stack"} if frames else {})

            def comparable(row, get, names, scale):
                return [(round(get(row, n) * scale) if n.endswith(("_total", "_ns")) else get(row, n)) for n in names]
            ours = [comparable(row, getattr, fields, 1000) for row in averages]
            theirs = [comparable(row, lambda r, n: "" if r[n] == "[]" else r[n], fields.values(), 1) for row in rows]
            self.assertEqual(sorted(map(str, ours)), sorted(map(str, theirs)))
            for key in ("self_cpu_time_total", "count"):
                text = self.report(path, "--wide", "--sort-by", key, "--row-limit", "5", *options)
                self.assertIn(averages.table(sort_by=key, row_limit=5), text)
        self.assertEqual(averages.table(header="a title").count("a title"), 1)
        table = prof.key_averages().table
        self.assertLess(table(top_level_events_only=True).count("\n"), table(row_limit=-1).count("\n"))
        self.assertEqual(table(row_limit=0).count("\n"), 5)

    def test_names_of_torch(self):
        prof = self.run_loop()
        averages = prof.key_averages()
        (row,) = [row for row in averages if row.key == "augment"]
        self.assertEqual((row.name, row.count, row.cpu_time), ("augment", 2, row.cpu_time_total / 2))
        self.assertEqual((row.device_time, row.cuda_time, row.cuda_time_total, row.self_cuda_time_total,
                          row.cuda_memory_usage, row.self_cuda_memory_usage), (0, 0, 0, 0, 0, 0))
        self.assertEqual(row._replace(device_time_total=6.0, device_memory_usage=4, self_cpu_time_total=1234.5,
                                      self_device_time_total=2.5e6)[3:5], (2.5e6, 6.0))
        changed = row._replace(device_time_total=6.0, device_memory_usage=4, self_cpu_time_total=1234.5)
        self.assertEqual((changed.cuda_time_total, changed.cuda_time, changed.cuda_memory_usage), (6.0, 3.0, 4))
        self.assertEqual((changed.self_cpu_time_total_str, changed.cuda_time_str), ("1.234ms", "3.000us"))
        self.assertEqual(str(averages), averages.table())
        self.assertIn("Self CPU time total", str(averages))

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_names_that_torch_has(self):
        import torch.profiler
        with torch.profiler.profile() as theirs:
            torch.ones(2)
        with weir.profile() as ours, weir.record_function("x"):
            pass
        (row,) = ours.key_averages()
        left_out = {"node_id", "is_async", "is_remote", "scope", "cpu_children", "cpu_parent", "is_legacy",
                    "add", "use_device", "overload_name"}
        names = {name for name in dir(theirs.key_averages()[0]) if not name.startswith("_")}
        self.assertEqual({name for name in names - left_out if not hasattr(row, name)}, set())
        self.assertEqual(str(theirs.key_averages()), theirs.key_averages().table(), "Averages relies on this")

    def test_a_window_without_ranges(self):
        with weir.profile(activities=[weir.ProfilerActivity.CPU]) as prof:
            pass
        self.assertEqual(len(prof.key_averages()), 0)
        for text in (prof.key_averages().table(), str(prof.key_averages())):
            self.assertRegex(text, r"^no ranges in this window: weir.profile records .*\n$")

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_report_of_autograds_own_writer(self):
        """torch's legacy writer omits categories; the averages still equal torch's."""
        import torch
        path = self.path("autograd.json")
        with torch.autograd.profiler.profile() as prof:
            product = torch.ones(30, 30) @ torch.ones(30, 30)
            with torch.autograd.profiler.record_function("mine"):
                product.relu_()
        prof.export_chrome_trace(path)
        rows = self.report(path, "--json")["traces"][0]["averages"]
        ours = {row["name"]: (row["count"], row["cpu_ns"], row["self_cpu_ns"]) for row in rows}
        theirs = {row.key: (row.count, round(row.cpu_time_total * 1e3), round(row.self_cpu_time_total * 1e3))
                  for row in prof.key_averages()}
        self.assertIn("mine", ours)
        self.assertEqual(ours, theirs)
        with open(path, "w", encoding="utf-8") as file:
            file.write('[{"name": "x", "ph": "X", "ts": 1, "dur": 2, "tid": 1, "pid": 1, "cat": "render"}]')
        done = subprocess.run([os.environ["WEIR_PROGRAM"], "report", path], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("none of its 1 ranges has a category", done.stderr)

    def test_shapes(self):
        prof = self.run_loop(record_shapes=True)
        self.assertEqual(self.trace(prof)["record_shapes"], 1)
        shapes = {row.input_shapes for row in prof.key_averages(group_by_input_shape=True)
                  if row.key == "03b_image_decode"}
        self.assertTrue("[[3, 48, 64]]" in shapes, shapes)

    def test_memory(self):
        prof = self.run_loop(profile_memory=True)
        self.assertEqual(self.trace(prof)["profile_memory"], 1)
        self.assertTrue(any(row.cpu_memory_usage for row in prof.key_averages()))
        self.assertIn("CPU Mem", prof.key_averages().table())
        self.assertNotIn("CPU Mem", self.run_loop().key_averages().table())

    def test_stacks(self):
        prof = self.run_loop(with_stack=True)
        self.assertEqual(self.trace(prof)["with_stack"], 1)
        for name in ("augment", "20_train_forward_pass", WAIT): # called from Python
            (first, *_) = self.ranges(prof, name)
            frames = first["args"]["Call stack"].split(";")
            self.assertRegex(frames[0], r"/test_profile\.py\(\d+\): Recorded\.run_loop$")
            self.assertRegex(frames[1], r"/test_profile\.py\(\d+\): Recorded\.test_stacks$")
        line = int(re.search(r"\((\d+)\)", self.ranges(prof, "augment")[0]["args"]["Call stack"])[1])
        with open(__file__, encoding="utf-8") as file:
            self.assertIn('weir.record_function("augment")', file.read().splitlines()[line - 1])
        worker = self.ranges(prof, "03b_image_decode")[0]["args"]["Call stack"]
        self.assertNotIn(".py(", worker)
        rows = {row.stack for row in prof.key_averages(group_by_stack_n=1) if row.key == "augment"}
        self.assertEqual(len(rows), 1)
        path = self.path("stacks")
        prof.export_stacks(path, "self_cpu_time_total")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertTrue(any(re.search(r"Recorded\.test_stacks;[^;]*Recorded\.run_loop \d+$", line) for line in lines))
        for line in lines:
            self.assertRegex(line, r"^\S+ \d+$")
        prof.export_stacks(path, "self_cuda_time_total")
        self.assertEqual(os.path.getsize(path), 0)
        self.run_loop().export_stacks(path)
        self.assertEqual(os.path.getsize(path), 0)

    def test_stacks_of_decorated_functions(self):
        """The stacks contain no frames of the package."""
        @weir.record_function("inner")
        def inner():
            pass

        @weir.stage("outer")
        def outer():
            inner()
        with weir.profile(with_stack=True, activities=[weir.ProfilerActivity.CPU]) as prof:
            outer()
        for name, functions in (("outer", ["test_stacks_of_decorated_functions"]),
                                ("inner", ["outer", "test_stacks_of_decorated_functions"])):
            frames = self.ranges(prof, name)[0]["args"]["Call stack"].split(";")
            self.assertEqual([frame.rsplit(".", 1)[1] for frame in frames[:len(functions)]], functions)

    def test_stacks_of_all_kinds(self):
        def nest(depth, names):
            with weir.record_function("nested"):
                pass
            if depth > 1:
                nest(depth - 1, names)
        with weir.profile(with_stack=True) as prof:
            nest(50, [])
            for i in range(3): # the code objects may share an address
                exec(compile("with weir.record_function('made'): pass", f"made;{i}\n.py", "exec"), {"weir": weir})
        stacks = [event["args"]["Call stack"].split(";") for event in self.ranges(prof, "nested")]
        self.assertEqual(max(map(len, stacks)), 32)
        made = [event["args"]["Call stack"].split(";")[0] for event in self.ranges(prof, "made")]
        self.assertEqual(made, [f"made:{i}.py(1): <module>" for i in range(3)])

    def test_noted_options(self):
        for option in ("with_flops", "with_modules"):
            self.assertEqual(self.trace(self.run_loop(**{option: True}))[option], 1)

    def test_files(self):
        folder = self.path("runs/a")
        handlers = [weir.tensorboard_trace_handler(folder), weir.tensorboard_trace_handler(folder, "a.b_7", True)]
        prof = self.run_loop(on_trace_ready=lambda prof: [handler(prof) for handler in handlers])
        plain, zipped = sorted(os.listdir(folder), key=lambda name: name.endswith(".gz"))
        self.assertRegex(plain, rf"^[\w-]+_{os.getpid()}\.\d{{19}}\.pt\.trace\.json$")
        self.assertRegex(zipped, r"^a-b_7\.\d{19}\.pt\.trace\.json\.gz$")
        self.assertEqual(read(os.path.join(folder, plain))["traceEvents"], self.trace(prof)["traceEvents"])
        self.assertEqual(read(os.path.join(folder, zipped))["traceEvents"], self.trace(prof, "b.gz")["traceEvents"])
        with open(self.path("b.gz"), "rb") as file:
            self.assertEqual(file.read(2), b"\x1f\x8b")
        for export in (prof.export_chrome_trace, prof.export_stacks):
            with self.assertRaisesRegex(FileNotFoundError, "nowhere"):
                export(self.path("nowhere/x.json"))
        with self.assertRaises(weir.Error):
            weir.tensorboard_trace_handler(self.path("b.gz"))(prof)
        for call in (weir.tensorboard_trace_handler, prof.export_chrome_trace, prof.export_stacks):
            for wrong in (None, 3, "a\0b", "\ud800"):
                with self.assertRaisesRegex((TypeError, ValueError), "must be a path.*" + re.escape(repr(wrong))):
                    call(wrong)

    @unittest.skipUnless(os.path.exists(os.path.join(os.environ.get("WEIR_SOURCE", ""), "build/clients-venv/requirements.txt")),
                         "tests/clients/setup.sh has not made the clients")
    def test_tensorboard(self):
        source = os.environ["WEIR_SOURCE"]
        path = self.path("host_1.5.pt.trace.json")
        self.run_loop(record_shapes=True, profile_memory=True, with_stack=True).export_chrome_trace(path)
        for script in ("trace_rules.py", "tb_views.py"):
            done = subprocess.run([os.path.join(source, "build/clients-venv/bin/python"),
                                   os.path.join(source, "tests/clients", script), path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_bad_values(self):
        with weir.profile() as prof:
            pass
        cases = [("activities", lambda: weir.profile(activities=[])),
                 ("activities", lambda: weir.profile(activities=["CPU"])),
                 ("activities", lambda: weir.profile(activities=3)),
                 ("schedule", lambda: weir.profile(schedule=3)),
                 ("not a ProfilerAction", lambda: weir.profile(schedule=lambda step: 7)),
                 ("on_trace_ready", lambda: weir.profile(on_trace_ready="runs")),
                 ("schedule", lambda: weir.schedule(wait=-1, warmup=1, active=1)),
                 ("schedule", lambda: weir.schedule(wait=1, warmup=1, active=0)),
                 ("schedule", lambda: weir.schedule(wait=1, warmup=1, active=1, repeat=-1)),
                 ("schedule", lambda: weir.schedule(wait=1, warmup=1, active=1, skip_first=-2)),
                 ("2\\^40", lambda: weir.schedule(wait=1, warmup=1, active=1 << 50)),
                 ("step must be", lambda: weir.schedule(wait=1, warmup=1, active=1)(-1)),
                 ("worker_name", lambda: weir.tensorboard_trace_handler("a", 3)),
                 ("group_by_stack_n", lambda: prof.key_averages(group_by_stack_n=-1)),
                 ("sort_by", lambda: prof.key_averages().table(sort_by=3)),
                 ("'speed' is not a sort key", lambda: prof.key_averages().table(sort_by="speed")),
                 ("row_limit", lambda: prof.key_averages().table(row_limit=-2)),
                 ("the metric of stacks must be", lambda: prof.export_stacks("x", "speed")),
                 ("metric", lambda: prof.export_stacks("x", 3))]
        for words, call in cases:
            with self.assertRaisesRegex(ValueError, words) as raised:
                call()
            self.assertNotIn("\n", str(raised.exception))
        with self.warned() as seen:
            weir.schedule(wait=1, warmup=0, active=1)
        self.assertEqual([w.filename for w in seen], [__file__])


class Gpu(Profiles):
    """In separate processes, because a process opens the CUDA module only once. The fake module has one GPU."""
    CODE = """if True:
        import ctypes, json, os, sys, warnings
        import weir
        warnings.simplefilter("always")
        class Fake(ctypes.Structure):
            _fields_ = [(name, ctypes.CFUNCTYPE(ctypes.c_int)) for name in ("add", "dropped")] + [
                ("fail_start", ctypes.CFUNCTYPE(None, ctypes.c_char_p))]
        activities = eval(sys.argv[1])
        if len(sys.argv) > 3:
            library = ctypes.CDLL(os.environ["WEIR_CUDA_MODULE"])
            why = sys.argv[3].encode()
            Fake.in_dll(library, "fake_trace").fail_start(why)
        with weir.profile(activities=activities, schedule=weir.schedule(wait=0, warmup=1, active=1)) as prof:
            for _ in range(4):
                with weir.record_function("mine"):
                    pass
                prof.step()
        prof.export_chrome_trace(sys.argv[2])
    """

    def profile(self, activities, *more, **environment):
        path = self.path("gpu.json")
        done = subprocess.run([sys.executable, "-c", self.CODE, activities, path, *more], capture_output=True, text=True,
                              env=dict(os.environ, **environment))
        self.assertEqual(done.returncode, 0, done.stderr)
        return read(path), done.stderr

    def names(self, file):
        return {event["name"] for event in file["traceEvents"] if event["ph"] == "X" and event["cat"] != "Trace"}

    def test_with_a_module(self):
        module = {"WEIR_CUDA_MODULE": os.environ["WEIR_FAKE_CUDA_MODULE"]}
        both = "[weir.ProfilerActivity.CPU, weir.ProfilerActivity.CUDA]"
        for activities, devices, names in ((both, 1, {"mine", "ProfilerStep#3"}), ("None", 1, {"mine", "ProfilerStep#3"}),
                                           ("[weir.ProfilerActivity.CUDA]", 1, {"ProfilerStep#3"}),
                                           ("[weir.ProfilerActivity.CPU]", 0, {"mine", "ProfilerStep#3"})):
            file, said = self.profile(activities, **module)
            self.assertEqual((len(file["deviceProperties"]), self.names(file), said), (devices, names, ""), activities)

    def test_another_tool(self):
        module = {"WEIR_CUDA_MODULE": os.environ["WEIR_FAKE_CUDA_MODULE"]}
        file, said = self.profile("[weir.ProfilerActivity.CPU, weir.ProfilerActivity.CUDA]", "another tool has CUPTI",
                                  **module)
        self.assertEqual(said.count("RuntimeWarning: GPU work is not recorded: another tool has CUPTI"), 1, said)
        self.assertEqual((self.names(file), file["deviceProperties"]), ({"mine", "ProfilerStep#3"}, []))

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_beside_torch(self):
        import torch.profiler
        both = [weir.ProfilerActivity.CPU, weir.ProfilerActivity.CUDA]
        with mock.patch.object(torch.cuda, "is_initialized", return_value=True), self.warned() as seen, \
                torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            seen.clear() # drops torch's warnings
            with weir.profile(activities=both) as prof, weir.record_function("mine"):
                pass
            with weir.profile(activities=both[:1]):
                pass
        self.assertEqual([(str(w.message).split(":")[1], w.filename) for w in seen],
                         [(" torch.profiler is recording in this process, and CUPTI has one user at a time", __file__)] +
                         2 * [(" torch.profiler is recording in this process; use one at a time", __file__)])
        self.assertEqual(self.names(self.trace(prof)), {"mine"})

    def test_without_a_module(self):
        module = {"WEIR_CUDA_MODULE": "/nowhere/libweir_cuda.so"}
        _, said = self.profile("None", **module)
        self.assertEqual(said, "")
        file, said = self.profile("[weir.ProfilerActivity.CPU, weir.ProfilerActivity.CUDA]", **module)
        self.assertEqual(len(re.findall("RuntimeWarning: GPU work is not recorded: WEIR_CUDA_MODULE=", said)), 1)
        self.assertEqual(self.names(file), {"mine", "ProfilerStep#3"})


if __name__ == "__main__":
    unittest.main()
