#!/usr/bin/env python3
"""Tests what pip installs: tests/python/check_installed.py WHEEL FOLDER, run by build/python-venv, whose pip it uses.

The program runs from the virtual environment's bin and finds its helper and the CUDA module in the package, all versions
agree, another package named weir is reported, and the source archive is complete. Creates its environments in FOLDER."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ADVICE = "pip uninstall weir weir-loader, then pip install weir-loader"
# Runs an example as far as its imports, with stand-ins for the frameworks.
EXAMPLE = """
import importlib.abc, importlib.machinery, runpy, sys, unittest.mock
class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("torch", "numpy", "lightning", "accelerate", "transformers"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return unittest.mock.MagicMock(__spec__=spec, __path__=[])
    def exec_module(self, module):
        pass
sys.meta_path.insert(0, StandIns())
runpy.run_path(sys.argv[1])
"""
wheel = folder = None


def run(*command, status=0, **environment):
    """(stdout, stderr), with neither PYTHONPATH nor this checkout in the environment."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, stdin=subprocess.DEVNULL,
                          env={"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "COLUMNS": "1000", **environment})
    assert done.returncode == status, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


class Environment:
    """A virtual environment. Its path contains characters that have a meaning in patterns."""

    def __init__(self, name):
        self.path = os.path.join(folder, f"{name} [*]")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", self.path], check=True)
        self.python, self.weir = (os.path.join(self.path, "bin", program) for program in ("python", "weir"))
        self.package = os.path.join(glob.glob(os.path.join(glob.escape(self.path), "lib/python3*/site-packages"))[0], "weir")

    def pip(self, *arguments):
        run(sys.executable, "-m", "pip", "--python", self.python, *arguments)

    def doctor_row(self, name):
        return re.search(rf"^  {name} +(yes|no +.*|yes .*)$", run(self.weir, "doctor")[0], re.M)[1]


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.env = Environment("program")
        cls.env.pip("install", wheel)
        cls.data = os.path.join(folder, "data")
        run(cls.env.weir, "synth", cls.data, "--episodes", "2", "--steps", "6", "--size", "64x48")

    def check_runs(self, weir):
        self.assertIn("12 steps", run(weir, "info", self.data)[0])
        log = os.path.join(folder, "log.jsonl")
        run(weir, "run", self.data, "--num-epochs", "2", "--num-workers", "1", "--log", log)
        self.assertIn("03b_image_decode", run(weir, "report", log)[0])

    def test_runs(self):
        self.check_runs(self.env.weir)
        helpers = glob.glob(os.path.join(glob.escape(self.env.path), "**/weir-hdf5"), recursive=True)
        self.assertEqual({os.path.realpath(path) for path in helpers}, {os.path.join(self.env.package, "weir-hdf5")})

    def test_runs_by_a_link(self):
        link = os.path.join(folder, "link")
        os.symlink(self.env.weir, link)
        self.check_runs(link)

    def test_target(self):
        target = os.path.join(folder, "target")
        run(sys.executable, "-m", "pip", "install", "--no-deps", "--target", target, wheel)
        self.check_runs(os.path.join(target, "bin", "weir"))
        out, _ = run(self.env.python, "-c", f"import weir; print(len(weir.Loader({self.data!r}, tensors='array').dataset))",
                     PYTHONPATH=target)
        self.assertEqual(out, "12\n")

    def test_doctor(self):
        self.assertEqual(self.env.doctor_row("python").split(None, 1), ["yes", f"weir-loader in {self.env.package}"])
        module = os.path.join(self.env.package, "libweir_cuda.so")
        if os.path.exists(module):
            self.assertIn(module, self.env.doctor_row("cuda module"))

    def test_train_act(self):
        """weir train starts ACT's script with the Python of its environment, not PATH's; torch is not there."""
        _, error = run(self.env.weir, "train", self.data, "--policy_class", "ACT", status=1)
        self.assertRegex(error, rf"^imitate_episodes: {re.escape(self.env.path)}/bin/python\S* cannot import \w+ \(.*\); run .*\n$")

    def test_newest_of_two_pythons(self):
        prefix = os.path.join(folder, "two")
        for python in ("python3.11", "python3.12"):
            os.makedirs(os.path.join(prefix, "lib", python, "site-packages", "weir"))
        os.makedirs(os.path.join(prefix, "bin"))
        weir = shutil.copy(self.env.weir, os.path.join(prefix, "bin"))
        helper = os.path.join(self.env.package, "weir-hdf5")
        for newest, other in (("python3.12", "python3.11"), ("python3.11", "python3.12")):
            broken, good = (os.path.join(prefix, "lib", python, "site-packages/weir/weir-hdf5") for python in (other, newest))
            shutil.copy("/bin/false", broken)
            shutil.copy(helper, good)
            while os.stat(good).st_ctime_ns <= os.stat(broken).st_ctime_ns:  # the clock of a file system is coarse
                os.utime(good)
            self.check_runs(weir)

    def test_versions(self):
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"^project\(weir VERSION ([0-9.]+)", file.read(), re.M)[1]
        for option in ("--version", "-V"):
            self.assertTrue(run(self.env.weir, option)[0].startswith(f"weir {version} ("))
        out, _ = run(self.env.python, "-c", "import importlib.metadata, weir\n"
                                            "print(weir.__version__, importlib.metadata.version('weir-loader'))")
        self.assertEqual(out.split(), [version, version])
        with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
            self.assertEqual(re.search(r"^## \[?([0-9.]+)", file.read(), re.M)[1], version)

    def test_pages(self):
        for page in ("man/man1/weir.1", "man/man1/weir-run.1", "bash-completion/completions/weir", "zsh/site-functions/_weir"):
            self.assertTrue(os.path.isfile(os.path.join(self.env.path, "share", page)), page)


class OtherPackage(unittest.TestCase):
    """A package named weir, of other contents, in place of weir-loader or mixed with it."""

    @classmethod
    def setUpClass(cls):
        cls.other = os.path.join(folder, "weir-0.4.0-py3-none-any.whl")
        info = "weir-0.4.0.dist-info"
        with zipfile.ZipFile(cls.other, "w") as archive:
            archive.writestr("weir/__init__.py", "")
            archive.writestr("weir/zfs.py", "def pools():\n    return []\n")
            archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: weir\nVersion: 0.4.0\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", f"weir/__init__.py,,\nweir/zfs.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n"
                                               f"{info}/RECORD,,\n")

    def check_examples(self, env, where=None):
        examples = glob.glob(os.path.join(ROOT, "examples", "*.py"))
        self.assertGreaterEqual(len(examples), 5)
        for example in examples:
            _, error = run(env.python, "-c", EXAMPLE, example, status=1)
            self.assertEqual(error.count("\n"), 1, error)
            self.assertIn(where or env.package, error)
            self.assertIn(f"another package of this name; {ADVICE}", error)

    def check_doctor(self, env, what):
        self.assertEqual(env.doctor_row("python").split(None, 1), ["no", f"{env.package} {what}: {ADVICE}"])

    def test_in_place(self):
        env = Environment("other")
        env.pip("install", self.other)
        self.check_examples(env)
        with zipfile.ZipFile(wheel) as archive:
            program = next(name for name in archive.namelist() if name.endswith("/scripts/weir"))
            with open(env.weir, "wb") as file:
                file.write(archive.read(program))
        os.chmod(env.weir, 0o755)
        self.check_doctor(env, "is another package named weir")

    def test_mixed(self):
        env = Environment("mixed")
        mixed = "mixes files of weir-loader and of another package named weir"
        env.pip("install", self.other, wheel)
        env.pip("install", "--force-reinstall", wheel)  # last, so that its __init__.py is in the folder
        loaded = "import weir; print(weir.Loader.__name__)"
        out, error = run(env.python, "-c", loaded)
        self.assertEqual(out, "Loader\n")
        self.assertRegex(error.splitlines()[0], rf"^<string>:1: RuntimeWarning: weir: .* {mixed}: {ADVICE}$")
        self.check_doctor(env, mixed)
        env.pip("install", "--force-reinstall", self.other)
        self.check_doctor(env, mixed)
        self.check_examples(env)
        env.pip("uninstall", "-y", "weir")  # and with it files of both
        self.check_doctor(env, "has lost files of weir-loader")
        self.check_examples(env, "NamespaceLoader")
        env.pip("uninstall", "-y", "weir", "weir-loader")
        env.pip("install", wheel)
        self.assertEqual(run(env.python, "-W", "error", "-c", loaded), ("Loader\n", ""))
        self.assertTrue(env.doctor_row("python").startswith("yes"))


class SourceArchive(unittest.TestCase):
    def test_is_the_tree(self):
        with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
            name = tomllib.load(file)["project"]["name"].replace("-", "_")
        script = "import sys, scikit_build_core.build as build; print(build.build_sdist(sys.argv[1]))"
        archive = subprocess.run([sys.executable, "-c", script, folder], cwd=ROOT, capture_output=True, text=True,
                                 check=True).stdout.split()[-1]
        with tarfile.open(os.path.join(folder, archive)) as file:
            files = {member.name.partition("/")[2] for member in file if not member.isdir()}
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                capture_output=True, text=True, check=True).stdout.split("\0")
        tree = {path for path in listed if path and os.path.lexists(os.path.join(ROOT, path))}
        self.assertRegex(archive, rf"^{name}-[0-9.]+\.tar\.gz$")
        self.assertEqual(files, tree | {"PKG-INFO"})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: check_installed.py WHEEL FOLDER", file=sys.stderr)
        sys.exit(2)
    wheel, folder = (os.path.abspath(argument) for argument in sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    unittest.main(argv=sys.argv[:1], verbosity=2)
