"""Runs the cases of tests/datasets/h5_cases.py and tests/datasets/h5_special.py: weir info must report the storage, and
every line of checksums must equal the reference's."""
import concurrent.futures
import json
import multiprocessing
import re
import tempfile
import traceback

from compare_h5py import Difference, compare, run_weir
import h5_cases
import h5_special

cases = []


def check_info(weir, path, case):
    facts = json.loads(run_weir(weir, ["info", path, "--json", *case.options.look_arguments(),
                                       *(["--on-error", "skip"] if case.skip else [])]))
    if facts["layout"] != case.layout:
        raise Difference(f"layout {facts['layout']}, should be {case.layout}")
    for camera in facts["cameras"]:
        for storage in camera["storage"]:
            library = storage["kind"].startswith("only through") if case.library is None else case.library
            if not re.search(case.kind, storage["kind"]) or storage["library"] != library:
                raise Difference(f"camera {camera['name']}: stored as {storage}, should be {case.kind}, "
                                 f"library {case.library}")


def check_refused(weir, path, case):
    for command in case.refused_by:
        said = run_weir(weir, [command, path, *case.options.look_arguments()], status=1)
        lines = [line for line in said.splitlines() if line.startswith(f"weir {command}: ")]
        if len(lines) != 1 or not re.search(case.error, lines[0]):
            raise Difference(f"weir {command}: expected a refusal with one line like \"{case.error}\", got: {said}")


def check(weir, case, number):
    """Returns the number of compared lines."""
    with tempfile.TemporaryDirectory() as folder:
        if case.script:
            return case.script(weir, folder)
        path = case.make(folder)
        if case.error:
            check_refused(weir, path, case)
            return 0
        check_info(weir, path, case)
        workers = (0, 1, 3)[number % 3]
        lines = compare(weir, path, case.options, workers, skip=case.skip)
        if number % 2 and not case.skip:
            lines += compare(weir, path, case.options, 3 - workers, shuffled=True)
        return lines


def attempt(weir, case, number):
    """(compared lines, error or None)"""
    try:
        return check(weir, case, number), None
    except Difference as e:
        return 0, str(e)
    except Exception:
        return 0, traceback.format_exc()


def attempt_number(weir, number):
    return attempt(weir, cases[number], number)


def run_all(weir, only, every, jobs, stride):
    """Runs every stride-th case and returns the number of failures."""
    found = [case for case in h5_cases.all_crossed(every) + h5_special.all_special() if only in case.name]
    cases.extend(found[::stride])
    lines = failed = 0
    fork = multiprocessing.get_context("fork")  # children inherit the cases, which cannot be pickled
    with concurrent.futures.ProcessPoolExecutor(jobs, fork) as pool:
        for case, (n, wrong) in zip(cases, pool.map(attempt_number, [weir] * len(cases), range(len(cases)))):
            lines += n
            if wrong:
                failed += 1
                print(f"FAIL: {case.name}: {wrong}", flush=True)
    print(f"synthetic: {len(cases)} cases, {lines} lines are equal, {failed} cases failed", flush=True)
    return failed
