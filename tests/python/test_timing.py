"""Stages, tables and the verdict; stubs and docstrings against the module."""
import ast
import contextlib
import enum
import importlib.util
import inspect
import io
import os
import re
import subprocess
import sys
import threading
import unittest

import common
import weir


def calls(table, name):
    row = re.search(rf"^{re.escape(name)} +\S+ +(\d+) +(\S+)s", table, re.M)
    return (int(row[1]), row[2]) if row else (0, "")


class Stages(common.Data):
    def test_with_and_decorator(self):
        @weir.stage("test decorated")
        def double(value, *, plus=0):
            """Twice."""
            with weir.stage("test inner"):
                return 2 * value + plus
        self.assertEqual(double(3, plus=1), 7)
        self.assertEqual((double.__name__, double.__doc__), ("double", "Twice."))
        with self.assertRaises(ZeroDivisionError), weir.stage("test with"):
            1 / 0
        with weir.stage("test with") as stage:
            self.assertIsInstance(stage, weir.Stage)
        threading.Thread(target=double, args=(1,)).start()
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join()
        table = weir.table()
        self.assertEqual([calls(table, f"test {name}")[0] for name in ("decorated", "inner", "with")], [2, 2, 2])

    def test_left_where_it_was_not_entered(self):
        stage = weir.stage("test stray")
        stage.__exit__()
        with stage:
            stage.__exit__(None, None, None)
        threading.Thread(target=stage.__exit__).start()

        def generate():
            with weir.stage("test generator"):
                yield
        generators = [generate(), generate()]
        for generator in generators:
            next(generator)
        generators.clear()
        with stage:
            pass
        self.assertEqual(calls(weir.table(whole=True), "test stray")[0], 2)

    def test_out_of_order(self):
        """Leaving a stage ends the stages inside it; leaving a stage that is not open ends nothing."""
        outer, inner = weir.stage("test outer"), weir.stage("test inside")
        with outer:
            inner.__enter__()
        inner.__exit__()
        with outer:
            inner.__exit__()
            self.assertEqual(calls(weir.table(whole=True), "test outer")[0], 1, "a stray exit ended the outer stage")
        table = weir.table(whole=True)
        self.assertEqual([calls(table, f"test {name}")[0] for name in ("outer", "inside")], [2, 1])

    def test_log_timing(self):
        weir.log_timing("test logged", 1.5)
        weir.log_timing("test logged", 0.25)
        self.assertEqual(calls(weir.table(), "test logged"), (2, "1.750"))
        for seconds in (-1, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                weir.log_timing("test logged", seconds)

    def test_names(self):
        for name in ("", "a\0b", "\udcff"):
            for call in (weir.stage, weir.record_function):
                with self.assertRaisesRegex(ValueError, "a name must be"):
                    call(name)
        with self.assertRaises(TypeError):
            weir.stage(3)
        with self.assertRaises(ValueError):
            weir.table("fr")
        code = "import weir\nfor i in range(100): weir.stage(f'name {i}')\n"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertRegex(done.stderr, "weir.Error: stage 'name \\d+': there are")

    def test_report(self):
        with weir.Loader(self.data, batch_size=4) as loader:
            for _ in loader:
                with weir.stage("20_train_forward_pass"):
                    pass
            table = loader.table()
            self.assertEqual(weir.table()[:20], table[:20])
            for words in ("03b_image_decode", "08_wait_for_data", "20_train_forward_pass", "queue:", "verdict:"):
                self.assertIn(words, table)
            self.assertTrue(loader.verdict().startswith("verdict:"), loader.verdict())
            spoken = re.sub(r"\bweir [a-z][^)\n]*", "", loader.verdict())
            self.assertNotIn(" --", spoken, "advice must name arguments, not program options")
            self.assertTrue(weir.verdict("zh").startswith("verdict:"), "only the table is translated")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                weir.print_timing_stats(whole=True)
            self.assertIn("03b_image_decode", printed.getvalue())
        self.assertIn("03b_image_decode", weir.table(whole=True))
        self.assertIn("08_wait_for_data", weir.table("zh", whole=True))
        text = weir.table(whole=True)
        self.assertRegex(text, r"(?m)^weir-w0 ", "the closed loader's workers are in the table")
        for text in (text, weir.verdict()):
            self.assertIn("no loader is open, so this verdict judges the loop alone", text)
            self.assertNotIn("covered", text)

    def test_a_command_in_the_advice_stays_as_a_shell_needs_it(self):
        large = self.synth("large", "--episodes", "1", "--steps", "60", "--size", "320x240")
        with weir.Loader(large, batch_size=2, num_workers=1) as loader:
            while "Cannot tell" in loader.verdict():
                for _ in loader:
                    pass
            commands = re.findall(r"\bweir convert ([^)\n]*)", loader.verdict())
            if not commands:
                self.skipTest("other processes take the cores: no advice with a command")
            for options in commands:
                self.assertRegex(options, r"^--\w+-?\w*( |,|$)")


class WithoutALoader(unittest.TestCase):
    def run_code(self, code):
        return self.run_both(code)[0]

    def run_both(self, code):
        code = "import weir\n" + code
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout, done.stderr

    def test_left_open(self):
        """A thread that ends inside a stage, entered directly or in a generator, causes one warning, and its end ends
        the stage."""
        begin = """import os, threading, time
def generate():
    with weir.stage("test generator"):
        yield
kept = []
def work(kind):
    if kind == "generator":
        kept.append(generate())
        next(kept[-1])
    else:
        for _ in range(70):
            weir.stage("test thread").__enter__()
for kind in KINDS:
    thread = threading.Thread(target=work, args=(kind,))
    thread.start()
while len(os.listdir("/proc/self/task")) > 1:  # join() returns before the thread is gone
    time.sleep(0.001)
"""
        for kind, called in (("generator", 1), ("thread", 31)):
            with self.subTest(kind):
                out, error = self.run_both(f"KINDS = [{kind!r}] * 3\n{begin}kept.clear()\nprint(weir.table())")
                self.assertEqual(calls(out, f"test {kind}")[0], 3 * called)
                self.assertEqual(error.count("RuntimeWarning"), 1, error)
                self.assertIn(f"a thread ended inside weir.stage('test {kind}')", error)
        _, error = self.run_both(f"KINDS = ['thread']\n{begin}")
        self.assertEqual(error.count("RuntimeWarning"), 1, "without a further call the warning appears at exit")

    def test_fork_inside_a_stage(self):
        """The child starts without open stages; the parent's stay open."""
        out, error = self.run_both("""import os, threading
def fork():
    with weir.stage("test outer"), weir.stage("test forks"):
        child = os.fork()
        if child == 0:
            with weir.stage("test child"):
                pass
    if child == 0:
        print(weir.table(), end="")
        print("END", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
fork()
thread = threading.Thread(target=fork)
thread.start()
thread.join()
print(weir.table())
""")
        self.assertEqual(error, "")
        tables = out.split("END\n")
        self.assertEqual([[calls(table, f"test {name}")[0] for name in ("outer", "forks", "child")] for table in tables],
                         [[0, 0, 1], [0, 0, 1], [2, 2, 0]])

    def test_nothing(self):
        self.assertIn("no stage was called", self.run_code("print(weir.table())"))
        self.assertIn("no loader is open", self.run_code("try: weir.verdict()\nexcept weir.Error as error: print(error)"))
        self.assertTrue(self.run_code("weir.print_timing_stats()"))

    def test_a_stage_without_with(self):
        hint = "weir.stage('decode') was created but never entered: use `with weir.stage('decode'):`"
        out, error = self.run_both("weir.stage('decode')\nprint(weir.table())\n"
                                   "try: weir.verdict()\nexcept weir.Error as error: print(error)")
        self.assertEqual((out.splitlines()[0], error), (hint, ""))
        self.assertIn("no stage was called", out)
        self.assertIn("no stage was timed; " + hint, out)
        for code in ("with weir.stage('decode'): pass\nweir.table()",  # entered, before this table
                     "weir.log_timing('decode', 1)\nweir.table()",
                     "import os\nweir.stage('decode')\nif os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))"):
            self.assertNotIn("never entered", self.run_both(code + "\nprint(weir.table())")[0])

    def test_language(self):
        timed = "weir.log_timing('my_stage', 2)\nweir.log_timing('20_train_forward_pass', 1)\n" \
                "weir.log_timing('21_backward', 3)\n"
        english, chinese = (self.run_code(f"{timed}weir.print_timing_stats({lang})") for lang in ("", "lang='zh'"))
        self.assertTrue(english.isascii(), english)
        self.assertIn("consumer-work", english)
        self.assertIn("性能分析统计", chinese)
        self.assertEqual(re.findall(r"(?m)^(\S+) +\| 总计: +\d", chinese),
                         ["21_backward", "my_stage", "20_train_forward_pass"], "largest total first")

    def test_stages_only(self):
        timed = "import time\nwith weir.stage('20_train_forward_pass'): time.sleep(0.05)\n" \
                "weir.log_timing('22_optimizer_step', 1000)\n"
        text = self.run_code(timed + "print(weir.table())\nprint(weir.verdict())")
        self.assertEqual(calls(text, "22_optimizer_step"), (1, "1000.000"))
        self.assertRegex(text, r"(verdict:|\.) 20_train_forward_pass takes \S+ % of the loop's time \(0\.\d+ of 0\.\d+ s\)")
        for lang in ("en", "zh"):
            printed = self.run_code(timed + f"weir.print_timing_stats({lang!r}, whole=True)\nprint('NEXT')\n"
                                            f"print(weir.table({lang!r}, whole=True), end='')").split("NEXT\n")
            # except for the shares of the loop's time, which goes on
            self.assertEqual(*[[re.sub(r" \S+%$", "", line) for line in text.splitlines() if line[:1].isdigit()]
                               for text in printed])
        for call in ("table", "verdict", "print_timing_stats"):
            with self.assertRaisesRegex(ValueError, "'en' or 'zh'"):
                getattr(weir, call)("fr")


class Ranks(common.Data):
    def processes(self, code, environments):
        """Runs the processes in parallel and returns their (stdout, stderr)."""
        started = [subprocess.Popen([sys.executable, "-c", "import weir\n" + code, self.data], text=True,
                                    env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for environment in environments]
        return [process.communicate() for process in started]

    def test_launchers(self):
        code = """import sys
with weir.Loader(sys.argv[1], batch_size=1, num_workers=0) as loader: print(len(loader))
weir.log_timing('21_backward', 1)
weir.print_timing_stats('en')"""
        launchers = [{"RANK": "1", "WORLD_SIZE": "3"}, {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"},
                     {"PMI_RANK": "1", "PMI_SIZE": "3"}, {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"}]
        for out, error in self.processes(code, launchers):
            self.assertEqual(out.splitlines()[:2], ["13", "rank 1 / 3:"], error)
            self.assertEqual(calls(out, "21_backward"), (1, "1.000"))
        ((out, _),) = self.processes(code, [{"SLURM_PROCID": "1", "SLURM_NTASKS": "3"}])
        self.assertEqual(out.splitlines()[0], "39", "a program in a batch script is not a rank")
        for bad in ({"RANK": "3", "WORLD_SIZE": "3"}, {"PMI_RANK": "x", "PMI_SIZE": "2"}, {"LOCAL_RANK": "-1"}):
            ((_, error),) = self.processes(code, [bad])
            self.assertRegex(error, f"ValueError: .*{next(iter(bad))}={next(iter(bad.values()))}")

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_slowest(self):
        code = """import os, sys
import torch.distributed as distributed
rank = int(os.environ["PART"])
distributed.init_process_group("gloo", init_method="file://" + os.environ["MEET"], rank=rank, world_size=2)
weir.log_timing("20_train_forward_pass", 2 - rank)
weir.log_timing("20_train", 1 + rank)
weir.log_timing("of rank %d" % rank, 1)
for lang in ("en", "zh"):
    weir.print_timing_stats(lang, whole=True)
with weir.profile() as prof:
    pass
prof.export_chrome_trace(os.environ["MEET"] + str(rank))
"""
        meet = os.path.join(self.work, "meet")
        (first, error), second = self.processes(code, [{"MEET": meet, "PART": str(rank)} for rank in (0, 1)])
        self.assertEqual(second[0], "", second)
        rows = {name: re.findall(rf"^{name} .*", first, re.M) for name in ("stage", "20_train_forward_pass", "20_train",
                                                                           "of rank 0", "of rank 1")}
        self.assertTrue(rows["stage"][0].endswith(" slowest rank"), error)
        for name, rank in (("20_train_forward_pass", 0), ("20_train", 1), ("of rank 0", 0)):
            seconds = 1 if name == "of rank 0" else 2
            self.assertTrue(rows[name][0].endswith(f" {rank} {seconds}.000s"), rows[name])
            self.assertTrue(rows[name][1].endswith(f"最慢进程: {rank} {seconds}.00s"), rows[name])
            self.assertEqual(len(rows[name][0]), len(rows["stage"][0]))
        self.assertEqual(rows["of rank 1"], [])
        for rank in (0, 1):
            with open(meet + str(rank), encoding="utf-8") as file:
                self.assertIn(f'"distributedInfo": {{"backend": "gloo", "rank": {rank}, "world_size": 2', file.read())


class Example(common.Data):
    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_plain(self):
        script = os.path.join(os.environ["WEIR_SOURCE"], "examples", "plain.py")
        narrow = self.synth("narrow", "--format", "robomimic", "--episodes", "2", "--steps", "8", "--size", "32x24")
        for data, steps in ((self.data, 5), (narrow, 2)):  # robomimic's qpos and actions differ in size
            done = subprocess.run([sys.executable, script, data, "1"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, "epoch 0 loss \\d")
            self.assertEqual(calls(done.stdout, "22_optimizer_step")[0], steps)


class Stubs(unittest.TestCase):
    def test_version(self):
        printed = subprocess.run([os.environ["WEIR_PROGRAM"], "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(printed.stdout.split()[1], weir.__version__)

    def test_options(self):
        """The loader's keywords have a type in the stub and a text in the docstring: that of `weir run --help-all`."""
        with open(os.path.join(os.path.dirname(weir.__file__), "__init__.pyi"), encoding="utf-8") as file:
            options = next(node for node in ast.parse(file.read()).body if getattr(node, "name", "") == "_Options").body
        types = {option.target.id: ast.unparse(option.annotation) for option in options}
        parameters, document = inspect.signature(weir.Loader).parameters, inspect.getdoc(weir.Loader)
        for name in list(parameters)[4:]:
            self.assertIn(name, types | {"keys": "", "tensors": ""})
            self.assertRegex(document, rf"(?m)^{name}\b", "help(weir.Loader) lacks it")
        self.assertEqual((types["pad"], types["image_size"], types["prefetch_factor"]),
                         ("Literal['zero', 'last']", "Sequence[int] | None", "int | None"))
        printed = subprocess.run([os.environ["WEIR_PROGRAM"], "run", "--help-all"], capture_output=True, text=True, check=True).stdout
        for text in ("samples per batch", "unit that an epoch visits", "auto is one thread per usable core"):
            self.assertIn(text, printed)
            self.assertIn(text, document)

    def test_they_fit(self):
        with open(os.path.join(os.path.dirname(weir.__file__), "__init__.pyi"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        nodes = {node.name: node for node in self.stubs(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(sorted(name for name in nodes if not name.startswith("_")), sorted(weir.__all__))
        for name in weir.__all__:
            thing = getattr(weir, name)
            self.assertTrue(inspect.getdoc(thing), f"{name} has no docstring")
            if isinstance(nodes[name], ast.FunctionDef):
                self.same_parameters(name, nodes[name], thing)
            else:
                self.check_class(nodes[name], thing)

    def stubs(self, tree):
        """Nodes of a stub and of the stubs it imports."""
        yield from tree.body
        for module in {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.level == 1}:
            if module == "_motion" and not hasattr(weir._weir, "_Motion"):
                continue  # an extra that is not built
            with open(os.path.join(os.path.dirname(weir.__file__), f"{module}.pyi"), encoding="utf-8") as file:
                yield from ast.parse(file.read()).body

    def check_class(self, node, thing):
        stubs = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}  # last overloads
        for name, stub in stubs.items():
            if name == "__buffer__": # not an attribute before Python 3.12
                continue
            self.assertTrue(hasattr(thing, name), f"{thing.__name__} has no {name}")
            if not stub.args.kwarg and (inspect.isfunction(getattr(thing, name)) or name == "__dlpack__"):
                self.same_parameters(f"{thing.__name__}.{name}", stub, getattr(thing, name))
        if thing.__module__.startswith("weir") and not issubclass(thing, (tuple, list, enum.Enum, Exception)):
            public = {name for klass in thing.__mro__[:-1] for name in vars(klass) if not name.startswith("_")}
            self.assertLessEqual(public, set(stubs), f"{thing.__name__} has members that its stub lacks")
            for name in public:
                self.assertTrue(inspect.getdoc(getattr(thing, name)), f"{thing.__name__}.{name} has no docstring")

    def same_parameters(self, name, stub, thing):
        if name.endswith("__exit__"):
            return
        arguments = stub.args
        wanted = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
        optional = len(arguments.defaults) + sum(value is not None for value in arguments.kw_defaults)
        parameters = list(inspect.signature(thing).parameters.values())
        self.assertEqual([p.name for p in parameters], wanted, name)
        self.assertEqual(sum(p.default is not p.empty for p in parameters), optional, name)


if __name__ == "__main__":
    unittest.main()
