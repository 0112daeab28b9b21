"""Stages, tables and the verdict; stubs and docstrings against the module."""
import ast
import contextlib
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
        self.assertEqual(calls(weir.table(), "test stray")[0], 2)

    def test_log_timing(self):
        weir.log_timing("test logged", 1.5)
        weir.log_timing("test logged", 0.25)
        self.assertEqual(calls(weir.table(), "test logged"), (2, "1.750"))
        for seconds in (-1, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                weir.log_timing("test logged", seconds)

    def test_names(self):
        for name in ("", "a\0b"):
            with self.assertRaises(ValueError):
                weir.stage(name)
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
            self.assertTrue(weir.verdict("zh").startswith("结论"))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                weir.print_timing_stats()
            self.assertIn("03b_image_decode", printed.getvalue())
        self.assertIn("03b_image_decode", weir.table())
        self.assertIn("08_wait_for_data", weir.table("zh"))
        with self.assertRaisesRegex(weir.Error, "open loader"):
            weir.verdict()


class Example(common.Data):
    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_plain(self):
        script = os.path.join(os.environ["WEIR_SOURCE"], "examples", "plain.py")
        done = subprocess.run([sys.executable, script, self.data, "1"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "epoch 0 loss \\d")
        self.assertEqual(calls(done.stdout, "22_optimizer_step")[0], 5)


class Stubs(unittest.TestCase):
    def test_they_fit(self):
        with open(os.path.join(os.path.dirname(weir.__file__), "__init__.pyi"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        nodes = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(sorted(name for name in nodes if not name.startswith("_")), sorted(weir.__all__))
        for name in weir.__all__:
            thing = getattr(weir, name)
            self.assertTrue(inspect.getdoc(thing), f"{name} says nothing of itself")
            if isinstance(nodes[name], ast.FunctionDef):
                self.same_parameters(name, nodes[name], thing)
            else:
                self.check_class(nodes[name], thing)

    def check_class(self, node, thing):
        stubs = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
        for name, stub in stubs.items():
            if name == "__buffer__": # of Python 3.12; a C class has it as a buffer before
                continue
            self.assertTrue(hasattr(thing, name), f"{thing.__name__} has no {name}")
            if inspect.isfunction(getattr(thing, name)) or name == "__dlpack__":
                self.same_parameters(f"{thing.__name__}.{name}", stub, getattr(thing, name))
        if thing.__module__.startswith("weir") and not issubclass(thing, (tuple, Exception)):
            public = {name for klass in thing.__mro__[:-1] for name in vars(klass) if not name.startswith("_")}
            self.assertLessEqual(public, set(stubs), f"{thing.__name__} has more than its stub says")
            for name in public:
                self.assertTrue(inspect.getdoc(getattr(thing, name)), f"{thing.__name__}.{name} says nothing of itself")

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
