"""The command `python -m weir watch`: runs a training script with every DataLoader watched."""
import builtins
import ctypes
import importlib.machinery
import os
import re
import runpy
import signal
import sys
import time
import zipfile

from ._watch_ranks import ranks

USAGE = "python -m weir watch [OPTIONS] SCRIPT [ARGUMENTS...]"
HELP = """Usage: {usage}
       python -m weir watch [OPTIONS] -m MODULE [ARGUMENTS...]
       torchrun [...] -m weir watch [OPTIONS] SCRIPT [ARGUMENTS...]

Runs a training script as `python SCRIPT` does, and watches every DataLoader in it, workers included. At the end it prints
a timing table and advice. Batches, random numbers and exceptions remain the same. Training processes that the script
starts by multiprocessing are watched too.

Options:
  -e, --every N         epochs between tables (default 0 = only at the end)
      --log FILE        append JSON lines for `weir report`
      --json FILE       write the final figures as JSON
      --html FILE       write the report as a web page
      --serve [ADDRESS] live figures on http://127.0.0.1:9464, or on this address
      --prometheus FILE the same as metrics in a file, rewritten every 10 s
      --headroom        measure steps without waiting, now and then
      --headroom-only   throw-away run: replay one batch, no loading
      --lang en|zh      language of the tables (default en)
  -h, --help            print this help

In a distributed run rank 0 prints; rank 3 writes run.rank3.jsonl for run.jsonl. A process that the script starts and that
is no rank prints, and writes run.pid123.jsonl. torchrun parses --log itself; put `--` before weir:
torchrun [...] -m -- weir watch --log run.jsonl train.py
""".format(usage=USAGE)

_VALUES = {"--every": "every", "-e": "every", "--log": "log", "--json": "json", "--html": "html", "--lang": "lang",
           "--prometheus": "prometheus"}
_FLAGS = {"--headroom": "headroom", "--headroom-only": "headroom_only"}


class _Usage(Exception):
    pass


def _parsed(arguments):
    """(options as a dict, arguments from SCRIPT or -m on)"""
    found, i = {}, 0
    while i < len(arguments) and arguments[i].startswith("-") and arguments[i] != "-m":
        name, equals, value = arguments[i].partition("=")
        name = name.replace("_", "-")
        i += 1
        if name in ("-h", "--help"):
            return {"help": True}, []
        if name == "--":
            break
        if name in _FLAGS and not equals:
            found[_FLAGS[name]] = True
        elif name == "--serve":
            follows = not equals and i < len(arguments) and re.search(r":\d+$", arguments[i])
            found["serve"] = value if equals else arguments[i] if follows else True
            i += 1 if follows else 0
        elif name in _VALUES:
            if not equals and i == len(arguments):
                raise _Usage("{} needs a value".format(name))
            found[_VALUES[name]] = value if equals else arguments[i]
            i += 0 if equals else 1
        else:
            raise _Usage("unknown option {}; options of the script follow its name".format(arguments[i - 1]))
    rest = arguments[i:]
    if not rest or rest == ["-m"]:
        raise _Usage("no script given")
    return found, rest


def _check_file(option, path):
    """A file is written when training ends, hours later: what is wrong with its folder is said now."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise _Usage("{} {}: is a folder".format(option, path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        raise _Usage("{} {}: {} cannot be written to".format(option, path, folder))


def _check_outputs(options, json, program):
    """No output is the script, another output, or a file of another kind."""
    from . import _outputs
    outputs = options.outputs("--") + ([("--json", "json", json)] if json is not None else [])
    try:
        _outputs.check(outputs, [("the script", program[0])] if program[0] != "-m" else ())
    except ValueError as error:
        raise _Usage(str(error)) from None


def _options(found):
    from . import _watch
    every = found.get("every", "0")
    if not every.isdigit():
        raise _Usage("--every {}: must be a number of epochs, 0 or more".format(every))
    if found.get("lang", "en") not in ("en", "zh"):
        raise _Usage("--lang {}: must be en or zh".format(found["lang"]))
    for name in ("log", "json", "html", "prometheus"):
        if name in found:
            _check_file("--" + name, found[name])
    headroom = "only" if "headroom_only" in found else found.get("headroom", False)
    try:
        return _watch.Options(int(every), found.get("log"), headroom, found.get("lang", "en"), found.get("serve"),
                              found.get("prometheus"), found.get("html"))
    except ValueError as error:
        raise _Usage("--" + str(error)) from None


def _report_on_sigterm(session):
    """Has SIGTERM print the final table and then end this process as it does by default, also during a long call in C.
    Children keep the default, and so do ranks: one that waits in a collective runs no handler of Python."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or ranks()[1] > 1:
        return
    pid, library = os.getpid(), session.library

    def report():
        """On this thread, or on one of the library's."""
        if library.sigterm_take():
            try:
                session.interrupted = True
                session.finish()
            finally:
                library.sigterm_end()
        while True:  # the other thread ends the process
            time.sleep(1)

    def end(number, frame):
        if signal.getsignal(number) is not end:  # the program's own handler calls those before it
            return
        if os.getpid() == pid:
            report()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def in_child():
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, end)
    os.register_at_fork(after_in_child=in_child)
    session.on_sigterm = ctypes.CFUNCTYPE(None)(report)  # for as long as the library may call it
    library.sigterm(session.on_sigterm)


def _set_first_path(path):
    """`python -m weir` has put the current directory there; without safe paths the script's own folder belongs there."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return
    sys.path[0] = path


def _main_module():
    """The module __main__, without the names of this package. It remains the program's, also as __mp_main__: processes of
    spawn and forkserver send objects of the script's classes by that name."""
    main = sys.modules["__main__"]
    for name in [name for name in vars(main) if not name.startswith("__")]:
        delattr(main, name)
    return main


def _run_script(path):
    """Runs a script as `python path` does."""
    main = _main_module()
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        if sys.path[0] != path:  # safe paths
            sys.path.insert(0, path)
        runpy._run_module_as_main("__main__", False)
        return
    if sys.version_info >= (3, 9):
        path = os.path.join(os.getcwd(), path)
    kind = importlib.machinery.SourcelessFileLoader if path.endswith(".pyc") else importlib.machinery.SourceFileLoader
    loader = kind("__main__", path)
    with open(path, "rb") as file:
        code = loader.get_code("__main__") if path.endswith(".pyc") else compile(file.read(), path, "exec",
                                                                                 dont_inherit=True)
    vars(main).update(__file__=path, __builtins__=builtins, __spec__=None, __package__=None, __cached__=None, __doc__=None,
                      __loader__=loader)
    if "__annotations__" in vars(main):
        main.__annotations__ = {}
    exec(code, main.__dict__)


def _run(arguments):
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        _set_first_path(os.getcwd())
        _main_module()
        runpy._run_module_as_main(arguments[1])
        return
    path = arguments[0]
    if not os.path.exists(path):
        print("python -m weir watch: {}: no such file".format(path), file=sys.stderr)
        sys.exit(2)
    sys.argv = arguments
    _set_first_path(path if os.path.isdir(path) or zipfile.is_zipfile(path) else os.path.dirname(os.path.realpath(path)))
    _run_script(path)


def main(arguments):
    if arguments[:1] != ["watch"]:
        is_help = arguments[:1] in (["-h"], ["--help"])
        print("Usage: {}\nOther commands are those of the program weir: weir --help".format(USAGE),
              file=sys.stdout if is_help else sys.stderr)
        sys.exit(0 if is_help else 2)
    try:
        found, rest = _parsed(arguments[1:])
        if "help" in found:
            print(HELP, end="")
            return
        options, json = _options(found), os.path.abspath(found["json"]) if "json" in found else None
        _check_outputs(options, json, rest)
    except _Usage as error:
        print("python -m weir watch: {}\nUsage: {}".format(error, USAGE), file=sys.stderr)
        sys.exit(2)
    from . import _watch
    session = _watch.watch_all(options, json)
    if session is not None:
        _report_on_sigterm(session)
    try:
        _run(rest)
    except BaseException as error:
        if session is not None:
            session.interrupted = not isinstance(error, SystemExit) or error.code not in (None, 0)
        raise
