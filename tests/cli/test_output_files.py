"""Checks that weir's outputs never destroy its inputs: test_output_files.py --tables PROGRAM [--weir PROGRAM]

Uses the option tables (printed by tools/option_paths.c), so that no option is missed. Every text option for a file
or folder must be marked as read or written, and an unmarked one must write nothing. Tests every output against every
input and every other output, by name, symbolic link and hard link, and against FIFOs, devices, folders and a full disk.
Also tests implicit paths: DST.partial and its contents, lock.mdb, temporary names.

Prints one line per failure and a summary; exit status 1 after a failure.
"""
import argparse
import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading

TIMEOUT_S = 300
CNN = ["--hidden-dim", "8", "--dim-feedforward", "8", "--chunk-size", "2", "--batch-size", "2", "--max-batches", "1"]
# Options that make each command quick. A new command needs an entry here, and its arguments one in Case.arguments.
QUICK = {"run": ["--max-batches", "1"], "train": CNN, "info": [], "verify": [], "doctor": [], "report": [], "compare": [], "top": [],
         "scenario": ["--batch-size", "2", "--warmup-steps", "0", "--profile-steps", "1", "--trace-dir", "t"],
         "motion": ["--num-envs", "2", "--num-steps", "4", "--warmup", "1", "--active", "1", "--device", "cpu",
                    "--trace-path", "t"],
         "convert": ["--to", "hdf5"], "synth": ["--episodes", "1", "--steps", "2", "--size", "16x16"],
         "bench": ["--formats", "as-is", "--cache", "warm", "--repeats", "1", "--min-seconds", "0.02"],
         "whatif": ["--max-minutes", "0.05"],
         "tune": ["--min-seconds", "0.02", "--max-cache", "0", "--max-cpu", "1", "--max-minutes", "0.02"]}
SLOW = {"whatif", "bench", "tune"}  # like the others, they write --index in weir_dataset_open

failures, checks = [], 0
lock = threading.Lock()


def check(what, fine, run=None):
    global checks
    with lock:
        checks += 1
        if not fine:
            failures.append(what)
            print(f"FAIL: {what}" + (f"\n    {run.args}\n    {run.returncode}: {run.stderr[-600:]}" if run else ""), flush=True)


def look(path):
    """The state of path and everything below, except what reading changes."""
    seen = {}
    for folder, names, files in itertools.chain([("", [], [path])], os.walk(path)):
        for name in names + files:
            at = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                st = os.lstat(at)
                what = os.readlink(at) if stat.S_ISLNK(st.st_mode) else ""
                if stat.S_ISREG(st.st_mode):
                    what = hashlib.sha256(open(at, "rb").read()).hexdigest()
                seen[at] = (stat.S_IFMT(st.st_mode), what)
    return seen


def lost(before):
    """The first path that changed."""
    return next((p for p, was in before.items() if look(p).get(p) != was), None)


class World:
    """Datasets, created once by weir's writers; cases copy them."""

    def __init__(self, weir, root):
        self.weir, self.root, self.count = weir, root, 0
        self.env = {k: v for k, v in os.environ.items() if k != "WEIR_DATASETS"}
        self.act = os.path.join(root, "act")
        self.run(root, "synth", self.act, "--format", "act-jpeg", "--episodes", "2", "--steps", "4", "--size", "32x24",
                 "--cameras", "top", must=True)
        self.sets = {"act": self.act}
        for to, name in (("packed", "a.weir"), ("tfrecord", "rlds"), ("lmdb", "a.lmdb"), ("zarr", "a.zarr")):
            done = self.run(root, "convert", self.act, name, "--to", to)
            if done.returncode == 0:
                self.sets[to] = os.path.join(root, name)
            elif "built without" not in done.stderr:
                sys.exit(f"{done.args}: {done.stderr}")
        self.run(root, "run", self.act, "--max-batches", "2", "--profile", "traces", "--schedule",
                 "wait=0,warmup=0,active=1,repeat=1", "--with-stack", must=True)
        traces = os.path.join(root, "traces")
        self.trace = os.path.join(traces, os.listdir(traces)[0])

    def run(self, cwd, *args, must=False, **kwargs):
        try:
            done = subprocess.run([self.weir, *args], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S, **kwargs)
        except subprocess.TimeoutExpired as e:
            done = subprocess.CompletedProcess(e.cmd, -9, "", "it hangs")
        if must and done.returncode:
            sys.exit(f"{done.args}: {done.stderr}")
        return done

    def folder(self):
        with lock:
            self.count += 1
            path = os.path.join(self.root, f"case{self.count}")
        os.mkdir(path)
        return path


class Case:
    """A folder with a command's fresh inputs, and its command line."""

    def __init__(self, world, command, option=None):
        self.world, self.command, self.cwd = world, command, world.folder()
        self.options, self.inputs = [], []
        self.arguments = []
        for i, how in zip(range(command["max_args"]), command["arg_paths"]):
            if how == "read":
                self.arguments.append(self.input_of(command["name"], i))
            elif how != "none":
                self.arguments.append(f"new{i}")
        if command["name"] == "report":
            self.arguments = self.arguments[:1]
            if option == "html":  # for logs; the other outputs are for traces
                self.put(self.inputs[0], '{"type":"run","config":{}}\n')
        if any(o["name"] == "config" for o in command["options"]):
            self.put("c.conf", "# nothing\n")
            self.options += ["--config", "c.conf"]
            self.inputs.append("c.conf")
        for name in [o["name"] for o in command["options"] if o["path"] == "read" and o["name"] != "config"]:
            if name == "motion":
                shutil.copy(os.path.join(world.act, "episode_0.hdf5"), self.at("clip.hdf5"))
                self.options += ["--motion", "clip.hdf5"]
                self.inputs.append("clip.hdf5")
            elif name == "dataset-dir":
                self.options += ["--dataset-dir", "data"]  # replaces DATA
                self.arguments = []
            else:
                raise SystemExit(f"{command['name']} --{name}: add its input here")

    def input_of(self, command, i):
        if command in ("report", "compare"):
            name = "t.json.gz" if command == "report" else f"t{i}.json.gz"
            shutil.copy(self.world.trace, self.at(name))
            self.inputs.append(name)
            return name
        shutil.copytree(self.world.act, self.at("data"))
        self.inputs.append("data/episode_1.hdf5")
        return "data"

    def at(self, name):
        return os.path.join(self.cwd, name)

    def put(self, name, text):
        with open(self.at(name), "w") as f:
            f.write(text)

    def run(self, *more, **kwargs):
        line = [self.command["name"], *self.arguments, *QUICK[self.command["name"]], *self.options, *more]
        done = self.world.run(self.cwd, *line, **kwargs)
        if "ended before anything was measured" in done.stderr:  # the machine is busy
            done = self.world.run(self.cwd, *line, "--max-minutes", "5", **kwargs)
        return done

    def refused(self, what, before, *more, line=None, **kwargs):
        done = self.run(*more, **kwargs)
        what = f"{self.command['name']} {' '.join(more)}: {what}"
        check(f"{what}: refused", done.returncode in (1, 2), done)
        told = [x for x in done.stderr.splitlines() if x.startswith("weir ")]
        check(f"{what}: one error line", len(told) == 1, done)
        if line:
            check(f"{what}: the error contains \"{line}\"", told and line in told[0], done)
        check(f"{what}: nothing is lost ({lost(before)})", lost(before) is None, done)
        return done

    def close(self):
        shutil.rmtree(self.cwd)


def outputs(command):
    return [o["name"] for o in command["options"] if o["path"] == "write"]


# ---- the tables ----

def check_marks(commands):
    for c in commands:
        for o in c["options"]:
            name = f"{c['name']} --{o['name']} {o['value']}"
            named = any(word in o["value"] for word in ("FILE", "DIR", "PATH"))
            check(f"{name}: names a file or folder, so it must be marked", not named or o["path"] != "none")
            check(f"{name}: is marked, so it must be a text option with FILE or DIR", o["path"] == "none" or (o["text"] and named))
            check(f"{name}: contains files, so it must be a folder", not o["files"] or o["path"] == "into")
        check(f"{c['name']} {c['args']}: arguments are marked", not c["args"] or c["args"].startswith("[PID") or c["arg_paths"][0] != "none")
        check(f"{c['name']}: the second argument is marked", c["max_args"] < 2 or c["arg_paths"][1] != "none")
        check(f"{c['name']}: has an entry in QUICK", c["name"] in QUICK)


def unmarked(world, command, option):
    """An option that is not marked as an output must not write to its path."""
    case = Case(world, command, option)
    case.put("kept", "kept\n")
    before = look(case.at("kept"))
    for value in ("kept", "made"):
        case.options = [x for x in case.options if option != "config" or x not in ("--config", "c.conf")]
        done = case.run(f"--{option}", value)
        check(f"{command['name']} --{option} {value}: not an output, so nothing is written",
              lost(before) is None and not os.path.lexists(case.at("made")), done)
    case.close()


# ---- outputs against inputs and other outputs ----

FORMS = ("itself", "a symbolic link", "a hard link", "a link of its folder")


def name_of(case, path, form):
    if form == "itself":
        return path
    if form == "a link of its folder":
        os.symlink(os.path.dirname(path) or ".", case.at("folder"))
        return os.path.join("folder", os.path.basename(path))
    (os.symlink if form == "a symbolic link" else os.link)(case.at(path), case.at("other"))
    return "other"


def against_inputs(world, command, option, form):
    case = Case(world, command, option)
    for path in case.inputs:
        for name in ("other", "folder"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(case.at(name))
        before = {p: w for i in case.inputs for p, w in look(case.at(i)).items()}
        case.refused(f"{form} of {path}", before, f"--{option}", name_of(case, path, form))
    if "c.conf" in case.inputs:  # named by the file itself
        case.put("c.conf", f"{option} = c.conf\n")
        case.refused("named by the file of --config", look(case.at("c.conf")), line="name the same file")
    case.close()


def against_outputs(world, command, first, second):
    case = Case(world, command)
    os.symlink(".", case.at("same"))
    os.symlink("new", case.at("dangling"))
    before = look(case.cwd)
    for a, b in (("new", "new"), ("new", "same/new"), ("new", "dangling")):
        case.refused(f"{a} and {b}", before, f"--{first}", a, f"--{second}", b, line="name the same file")
        check("nothing was created", not os.path.exists(case.at("new")))
    case.close()


def against_own_files(world, command, folder, name, option):
    case = Case(world, command, option)
    case.refused("a file of the folder", {}, f"--{folder}", "into", f"--{option}", f"into/{name}", line="names a file that")
    os.makedirs(case.at("into"), exist_ok=True)
    case.refused("a file of the folder", {}, f"--{folder}", "into", f"--{option}", f"into/{name}", line="names a file that")
    case.close()


def against_parts(world, command, option, kind):
    """Files inside a dataset, used for frames or not, existing or not."""
    case = Case(world, command, option)
    to = case.at(os.path.basename(world.sets[kind]))
    (shutil.copytree if os.path.isdir(world.sets[kind]) else shutil.copy)(world.sets[kind], to)
    case.arguments[0] = to
    files = [os.path.join(f, n) for f, _, names in os.walk(to) for n in names] or [to]
    files = [p for p in files if os.path.basename(p) != "dataset_info.json"]  # never read
    if kind == "zarr":
        files = files[::max(len(files) // 6, 1)] + [os.path.join(to, ".zattrs"), os.path.join(to, "new")]
    if kind == "act":
        files.append(os.path.join(to, "episode_2.hdf5"))
    if kind == "lmdb":
        files.append(os.path.join(to, "lock.mdb"))
    for path in files:
        before = look(to)
        case.refused("is a part of the dataset", {p: w for p, w in before.items() if not p.endswith("lock.mdb")},
                     f"--{option}", path)
        check(f"{path} was not created", path in before or not os.path.exists(path) or path.endswith("lock.mdb"))
    for folder in [o["name"] for o in command["options"] if o["path"] == "into" and o["name"] != "cache"] if kind == "zarr" else []:
        for place in (to, os.path.join(to, "new"), os.path.join(to, "data", "..", "new")):
            case.refused("inside the dataset", look(to), f"--{folder}", place, line="is a part of the dataset")
    if kind == "act":  # a skipped file is still part of the dataset
        os.truncate(os.path.join(to, "episode_1.hdf5"), 100)
        case.refused("is left out", look(to), f"--{option}", os.path.join(to, "episode_1.hdf5"), "--on-error", "skip")
    case.close()


def onto_streams(world, command, option):
    case = Case(world, command, option)
    for stream in ("stdout", "stderr"):
        case.put("both", "kept\n")
        with open(case.at("both"), "a") as f:
            at = f.tell()
            done = subprocess.run([world.weir, command["name"], *case.arguments, *QUICK[command["name"]], *case.options,
                                   f"--{option}", "both"], cwd=case.cwd, env=world.env, stdin=subprocess.DEVNULL,
                                  text=True, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, stream: f})
        text = open(case.at("both")).read()
        check(f"{command['name']} --{option} into {stream}: refused", done.returncode == 2)
        check(f"{command['name']} --{option} into {stream}: keeps the existing content", text.startswith("kept\n"))
        check(f"{command['name']} --{option} into {stream}: nothing else is written", stream == "stderr" or len(text) == at)
    case.close()


# ---- allowed targets of an output ----

def targets(world, command, option):
    name = f"{command['name']} --{option}"
    case = Case(world, command, option)
    os.mkdir(case.at("folder"))
    os.mkfifo(case.at("fifo"))
    os.symlink("/dev/full", case.at("full"))
    os.symlink("/dev/null", case.at("null"))
    os.symlink("real/file", case.at("link"))
    os.mkdir(case.at("real"))
    kinds = {p: os.lstat(case.at(p)).st_mode for p in ("fifo", "full", "null", "link")}
    for what, path in (("a folder", "folder"), ("in a folder that is not there", "none/x"), ("a FIFO that nobody reads", "fifo")):
        done = case.refused(what, {}, f"--{option}", path)
        check(f"{name}: {what} is refused before measuring", "images/s" not in done.stdout and
              "measuring" not in done.stderr, done)
    case.refused("a full disk", {}, f"--{option}", "full")
    case.refused("a server", {}, f"--{option}", "http://127.0.0.1:9/new", line=f"--{option} is a URL, but only files")
    done = case.run(f"--{option}", "null")
    check(f"{name} /dev/null: accepted, except as a state", done.returncode == 0 or option == "state", done)
    shutil.rmtree(case.at("new1"), ignore_errors=True)
    done = case.run(f"--{option}", "link")
    check(f"{name}: the output is written through the link", done.returncode == 0 and os.path.getsize(case.at("real/file")) > 0, done)
    check(f"{name}: no other file was created", os.listdir(case.at("real")) == ["file"])
    shutil.rmtree(case.at("new1"), ignore_errors=True)
    reader = os.open(case.at("fifo"), os.O_RDWR | os.O_NONBLOCK)
    done = case.run(f"--{option}", "fifo")
    got = b""
    with contextlib.suppress(BlockingIOError):
        got = os.read(reader, 1 << 16)
    os.close(reader)
    if option == "state":
        check(f"{name}: a FIFO cannot be a state, which is read first", done.returncode == 1, done)
    else:
        check(f"{name}: a FIFO's reader receives the output", done.returncode == 0 and got, done)
    for path, mode in kinds.items():
        check(f"{name}: {path} is unchanged", os.lstat(case.at(path)).st_mode == mode)
    case.close()


def into_folder(world, command, option):
    case = Case(world, command, option)
    case.put("file", "kept\n")
    case.refused("a file is no folder", look(case.at("file")), f"--{option}", "file")
    case.close()


# ---- implicit paths ----

def links_to(case, precious, place, kind):
    """Puts a link or FIFO at place; returns the paths that must not change."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(case.at(place))
    if kind == "fifo":
        os.mkfifo(case.at(place))
    else:
        (os.symlink if kind == "symbolic link" else os.link)(case.at(precious), case.at(place))
    return {**look(case.at(precious)), **look(case.at(place))}


def lock_files(world, commands, kind):
    """A foreign dataset's lock.mdb may be a link to one of the user's files."""
    case = Case(world, commands["run"])
    for name in ("a.lmdb", "one.mdb"):
        if name == "a.lmdb":
            shutil.copytree(world.sets["lmdb"], case.at(name))
        else:
            shutil.copy(os.path.join(world.sets["lmdb"], "data.mdb"), case.at(name))
        case.put("precious", "kept\n" * 5000)
        before = links_to(case, "precious", "a.lmdb/lock.mdb" if name == "a.lmdb" else "one.mdb-lock", kind)
        for command in ("run", "info"):
            done = world.run(case.cwd, command, name, *QUICK[command])
            check(f"{command} {name}: is read despite a lock file that is a {kind}", done.returncode == 0, done)
            check(f"{command} {name}: leaves the lock file unchanged ({lost(before)})", lost(before) is None, done)
        check("weir info reports it", "refusing to write to" in done.stdout + done.stderr, done)
    case.close()


def partial_places(world, commands, kind):
    command = commands["convert"]
    for place in ("new1.partial/state.json", "new1.partial"):
        case = Case(world, command)
        os.mkdir(case.at("precious.d")) if place == "new1.partial" else case.put("precious", "kept\n")
        if place != "new1.partial":
            os.mkdir(case.at("new1.partial"))
            before = links_to(case, "precious", place, kind)
        elif kind == "symbolic link":
            os.symlink("precious.d", case.at(place))
            before = look(case.cwd)
        else:
            case.put(place, "kept\n")
            before = look(case.at(place))
        case.refused(f"{place} is a {kind}", before)
        check("no copy", not os.path.exists(case.at("new1")))
        case.close()


def resumed_copies(world, commands, to, kind):
    """An interrupted copy that contains links planted by someone else."""
    if to not in ("hdf5", *world.sets):
        return
    command = commands["convert"]
    case = Case(world, command)
    with open(case.at("data/episode_1.hdf5"), "r+b") as f:  # damages a frame of the second episode
        bytes_ = f.read()
        at = bytes_.rfind(b"\xff\xd8\xff")
        f.seek(at)
        f.write(b"\0" * 64)
    name = "new1" + {"packed": ".weir", "zarr": ".zarr", "lmdb": ".lmdb"}.get(to, "")
    done = world.run(case.cwd, "convert", "data", name, "--to", to)
    check(f"convert --to {to} of bad data stops", done.returncode == 1 and os.path.isdir(case.at(f"{name}.partial")), done)
    copy = case.at(f"{name}.partial/{name}")
    files = [copy] if os.path.isfile(copy) else [os.path.join(f, n) for f, _, names in os.walk(copy) for n in names]
    for victim in files[:6]:
        shutil.copy(victim, case.at("precious"))
        os.rename(victim, case.at("aside"))
        before = links_to(case, "precious", os.path.relpath(victim, case.cwd), kind)
        done = world.run(case.cwd, "convert", "data", name, "--to", to, "--on-error", "substitute")
        check(f"convert --to {to}: {victim} as a {kind} is refused", done.returncode == 1 and "remove it" in done.stderr, done)
        check(f"convert --to {to}: nothing is lost ({lost(before)})", lost(before) is None, done)
        os.rename(case.at("aside"), victim)
        os.unlink(case.at("precious"))
    done = world.run(case.cwd, "convert", "data", name, "--to", to, "--on-error", "substitute")
    check(f"convert --to {to}: after removing it the copy is resumed", done.returncode == 0, done)
    case.close()


def temporary_names(world, commands):
    """Temporary files must not be written through links planted under their names."""
    if "train" not in commands:
        return
    case = Case(world, commands["train"])
    os.mkdir(case.at("k"))
    case.put("precious", "kept\n")
    for name in ("policy_last.safetensors.partial", "policy_best.safetensors.partial"):
        os.symlink("../precious", case.at(f"k/{name}"))
    before = look(case.at("precious"))
    done = case.run("--ckpt-dir", "k")
    if "openblas" not in done.stderr:
        check("train: checkpoints are written", done.returncode == 0, done)
        check("train: the link's file is unchanged", lost(before) is None)
        os.makedirs(case.at("disk"))
        os.rename(case.at("k/policy_last.safetensors"), case.at("disk/p"))
        os.symlink("../disk/p", case.at("k/policy_last.safetensors"))
        was = os.stat(case.at("disk/p")).st_mtime_ns
        done = case.run("--ckpt-dir", "k")
        check("train: a checkpoint that is a link stays one", done.returncode == 0 and
              os.path.islink(case.at("k/policy_last.safetensors")) and os.stat(case.at("disk/p")).st_mtime_ns != was, done)
    for name in ("policy_last.safetensors", "policy_best.safetensors"):
        os.makedirs(case.at(f"{name}.d/{name}"))
        done = case.run("--ckpt-dir", f"{name}.d", "--num-epochs", "3")
        if "openblas" not in done.stderr:
            check(f"train: {name} that is a folder is refused before the first epoch", done.returncode == 1 and
                  "is not a regular file" in done.stderr and "epoch 1/" not in done.stdout, done)
    case.close()


def inside_of_source(world, commands):
    case = Case(world, commands["convert"])
    os.symlink("data", case.at("way"))
    for place in ("data/copy", "way/copy", "data/a/b/../copy", "./data/../data/copy", "data/copy/"):
        case.arguments[1] = place
        case.refused("a copy inside its source", look(case.cwd), line="is inside")
    for place in ("", "data", "data/", "."):
        case.arguments[1] = place
        case.refused(f"a copy named '{place}'", look(case.cwd))
    case = Case(world, commands["bench"])
    case.refused("copies inside the source", look(case.cwd), "--work-dir", "data/w", line="is inside")
    case.close()


def partial_is_no_data(world, commands):
    case = Case(world, commands["run"])
    os.makedirs(case.at("data/other.partial/other"))
    case.put("data/other.partial/state.json", "{}")
    shutil.copy(case.at("data/episode_0.hdf5"), case.at("data/other.partial/other/episode_9.hdf5"))
    done = world.run(case.cwd, "info", "data", "--json")
    check("a copy in progress is not data", done.returncode == 0 and json.loads(done.stdout)["episodes"] == 2, done)
    for name in ("episode_0.hdf5", "episode_1.hdf5"):
        os.unlink(case.at(f"data/{name}"))
    done = world.run(case.cwd, "info", "data")
    check("without other data the error names it", done.returncode == 1 and "unfinished copy" in done.stderr, done)
    done = world.run(case.cwd, "info", "data/other.partial", "--json")
    check("it can be read by its path", done.returncode == 0 and json.loads(done.stdout)["episodes"] == 1, done)
    case.close()


def two_at_once(world, commands):
    """Of concurrent conversions to one path, one writes the copy; the others fail with one line."""
    case = Case(world, commands["convert"])
    for i in range(12):
        both = [subprocess.Popen([world.weir, "convert", "data", f"copy{i}", "--to", "hdf5", "--num-workers", "1"],
                                 cwd=case.cwd, env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True) for _ in range(3)]
        told = [(p.communicate(timeout=TIMEOUT_S)[1], p.returncode) for p in both]
        lost_ones = [t for t, status in told if status]
        check(f"one of three copies succeeds: {told}", len(lost_ones) == 2)
        check(f"the others fail with one line: {told}", all(t.count("\n") == 1 and ("another weir convert is writing this copy" in t or
                                                ": exists; " in t) for t in lost_ones))
        check("the copy is complete", sorted(os.listdir(case.at(f"copy{i}"))) == ["episode_0.hdf5", "episode_1.hdf5"])
        check("no partial copy remains", not os.path.lexists(case.at(f"copy{i}.partial")))
    case.close()


def config_fifo(world, commands):
    case = Case(world, commands["info"])
    case.options = []
    os.mkfifo(case.at("fifo"))
    case.refused("a FIFO without a writer", {}, "--config", "fifo", line="no process has opened this FIFO for writing")
    writer = threading.Thread(target=lambda: open(case.at("fifo"), "w").write("on-error = skip\n"), daemon=True)
    writer.start()
    done = case.run("--config", "fifo")
    writer.join(TIMEOUT_S)
    check("a FIFO with a writer is read", done.returncode == 0, done)
    done = subprocess.run(["bash", "-c", f"'{world.weir}' info data --config <(sleep 0.2; echo camera = top)"],
                          cwd=case.cwd, capture_output=True, text=True, timeout=TIMEOUT_S)
    check("a shell's <( ) is read to its end", done.returncode == 2 and "option --camera" in done.stderr, done)
    case.close()
    case = Case(world, commands["report"])
    os.mkfifo(case.at("fifo"))
    case.arguments = ["fifo"]
    case.refused("a FIFO without a writer", {}, line="is a pipe")
    case.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--weir", default=os.environ.get("WEIR_PROGRAM", "build/release/weir"))
    p.add_argument("--tables", required=True, help="program of fixtures/option_paths.c")
    p.add_argument("--jobs", type=int, default=8 * len(os.sched_getaffinity(0)), help="parallel jobs; most wait")
    p.add_argument("--timeout", type=float, default=300, help="limit of a run in seconds")
    p.add_argument("--only", help="run only this part")
    o = p.parse_args()
    global TIMEOUT_S
    TIMEOUT_S = o.timeout
    commands = [json.loads(line) for line in subprocess.run([o.tables], capture_output=True, check=True, text=True).stdout.splitlines()]
    by_name = {c["name"]: c for c in commands}
    work = tempfile.mkdtemp()
    try:
        check_marks(commands)
        jobs = []
        world = World(os.path.realpath(o.weir), work)

        def add(part, *args):
            if not o.only or o.only == part.__name__:
                jobs.append((part, args))
        tried = set()  # several commands share a row of weir run
        for c in commands:
            for option in c["options"]:
                if option["text"] and option["path"] in ("none", "read") and str(option) not in tried and c["name"] not in SLOW:
                    tried.add(str(option))
                    add(unmarked, world, c, option["name"])
                if option["path"] == "into":
                    add(into_folder, world, c, option["name"])
                for name, other in itertools.product(option["files"].split(), outputs(c)):
                    add(against_own_files, world, c, option["name"], name, other)
            for option in outputs(c):
                for form in FORMS:
                    add(against_inputs, world, c, option, form)
                add(onto_streams, world, c, option)
                if not (c["name"] in SLOW and option == "index") and c["name"] != "scenario":
                    add(targets, world, c, option)
                if c["arg_paths"][0] == "read" and c["name"] in ("run", "info", "tune", "whatif"):
                    for kind in world.sets:
                        add(against_parts, world, c, option, kind)
            for first, second in itertools.combinations(outputs(c), 2):
                add(against_outputs, world, c, first, second)
        for kind in ("symbolic link", "hard link", "fifo"):
            if "lmdb" in world.sets:
                add(lock_files, world, by_name, kind)
            add(partial_places, world, by_name, kind)
        for to, kind in itertools.product(("hdf5", "packed", "tfrecord", "lmdb", "zarr"), ("symbolic link", "hard link")):
            add(resumed_copies, world, by_name, to, kind)
        for part in (temporary_names, inside_of_source, partial_is_no_data, two_at_once, config_fifo):
            add(part, world, by_name)
        jobs.sort(key=lambda job: job[0] is not targets)  # the longest first
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            for (part, args), job in [(j, pool.submit(j[0], *j[1])) for j in jobs]:
                try:
                    job.result()
                except Exception as e:  # the other jobs continue
                    names = [a["name"] if isinstance(a, dict) and "name" in a else a for a in args[1:] if not isinstance(a, dict) or "name" in a]
                    check(f"{part.__name__} {names}: {e!r}", False)
    finally:
        shutil.rmtree(work)
    print(f"{len(jobs)} cases, {checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
