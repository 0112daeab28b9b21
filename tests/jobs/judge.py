#!/usr/bin/env python3
"""Runs training jobs with a known slow part under `weir top` and `python -m weir watch`, and compares what these report.

    tests/jobs/judge.py --weir build/release/weir --pythonpath build/release/python
    tests/jobs/judge.py ... --only decode,lock --repeats 5 --method fork,spawn,forkserver
    tests/jobs/judge.py ... --gains            runs each job again after the advice: predicted and measured gain
    tests/jobs/judge.py ... --overhead         interleaved runs with and without
    tests/jobs/judge.py ... --witnesses        the same run under both, and `weir report` of its log: do they agree?
    tests/jobs/judge.py ... --cuda             only the jobs with a GPU, their steps on it

The jobs are in job_list.py; train.py runs them. A verdict is right if its first cause is one of the job's, "unsure" if it
says so, "crowded" if it is another but other processes used half a core or more: such runs are repeated twice. The exit
status is 1 if a verdict is wrong, 77 if no Python with torch is found."""
import argparse
import concurrent.futures
import json
import os
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from job_list import JOBS, LIST
from job_run import Machine, Run, Skipped

QUICK = ["own-file", "no-workers", "slow-step"]  # certain within seconds, and without OpenCV and h5py


def plain(machine, job, o, method, seed, changes=(), advice=None):
    with Run(machine, job, o, method, seed, changes, advice) as run:
        return run.finish(), run


def under_top(machine, job, o, method, seed):
    """(verdict, run) of weir top over the job's middle."""
    with Run(machine, job, o, method, seed, seconds=o.seconds + 2) as run:
        time.sleep(o.warm_up)
        top = subprocess.run([machine.weir, "top", "--json", "--seconds", str(o.seconds), str(run.pid)], capture_output=True,
                             text=True)
        run.finish()
    if top.returncode:
        raise RuntimeError(f"weir top {run.pid}: exit status {top.returncode}\n{top.stderr}")
    return last_json(top.stdout), run


def under_watch(machine, job, o, method, seed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "watch.json"
        with Run(machine, job, o, method, seed, watch=path) as run:
            run.finish()
        if not path.exists():
            raise RuntimeError(f"python -m weir watch wrote no {path.name}\n{run.stderr[-2000:]}")
        return last_json(path.read_text()), run


def under_all(machine, job, o, method, seed):
    """Documents of weir.watch, weir top and `weir report` of the watch's log, about the same run."""
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder) / "watch.json", Path(folder) / "watch.jsonl"
        with Run(machine, job, o, method, seed, watch=path, seconds=o.seconds + 2, options=["--log", str(log)]) as run:
            time.sleep(o.warm_up)
            top = subprocess.run([machine.weir, "top", "--json", "--seconds", str(o.seconds), str(run.pid)],
                                 capture_output=True, text=True)
            run.finish()
        report = subprocess.run([machine.weir, "report", "--json", str(log)], capture_output=True, text=True)
        for done in (top, report):
            if done.returncode:
                raise RuntimeError(f"{' '.join(done.args)}: exit status {done.returncode}\n{done.stderr}")
        whole = last_json(report.stdout)["runs"][-1]["reports"][-1]  # those before it cover parts of the run
        return {"watch": last_json(path.read_text()), "top": last_json(top.stdout), "report": whole}, run


def last_json(text):
    """The last document of lines of JSON, or the only document."""
    try:
        return json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError(f"no JSON: {text[:200]}") from None
        return json.loads(lines[-1])


def find(document, key):
    """The first value of a key, at any depth, outside first."""
    level = [document]
    while level:
        following = []
        for value in level:
            if isinstance(value, dict):
                if key in value:
                    return value[key]
                following += value.values()
            elif isinstance(value, list):
                following += value
        level = following
    return None


def causes_of(document):
    """[(cause, gain or None, advice)], the first one first."""
    verdict = find(document, "verdict") or {}
    return [(c["cause"], c.get("gain"), c) for c in verdict.get("causes", [])] or [("unsure", None, {})]


def judge(expected, causes, others):
    """With half a core or more in other hands, a job can have another limit than on its own."""
    first = causes[0][0]
    if first in expected:
        return "right"
    if first == "unsure":
        return "unsure"
    return "crowded" if others >= 0.5 else "wrong"


FUNCTIONS = {"cv2.setNumThreads": "cv2_threads", "torch.set_num_threads": "torch_threads"}


def setting_of(text):
    """["key=number"] for --set of train.py, from "num_workers=8", "in_order=False" or "cv2.setNumThreads(0)"."""
    found = []
    for function, value in re.findall(r"([\w.]+)\((\d+)\)", text):
        if function in FUNCTIONS:
            found.append(f"{FUNCTIONS[function]}={value}")
    for key, value in re.findall(r"(\w+)=(True|False|\d+)", text):
        found.append(f"{key}={ {'True': 1, 'False': 0}.get(value, value)}")
    return found


def advised(document):
    """[(settings for --set, predicted ratio)] of the advice that is a setting of the loader."""
    found = []
    for advice in (find(document, "verdict") or {}).get("advice") or []:
        setting = advice.get("setting") or {}
        texts = [f"{key}={value}" for key, value in setting.items()] or setting_of(advice.get("flag") or "")
        if texts:
            found.append((texts, advice.get("ratio")))
    return found


def gain_of(machine, job, o, method, seeds, changes, advice):
    """Measured ratio of rates, after over before: medians of interleaved runs."""
    before, after = [], []
    for seed in seeds:
        before.append(plain(machine, job, o, method, seed)[0]["rate"])
        after.append(plain(machine, job, o, method, seed, changes, advice)[0]["rate"])
    return statistics.median(after) / statistics.median(before)


def judged(machine, job, o, method, tool, seed, say):
    """One run under a tool, as a row."""
    document, run = {"top": under_top, "watch": under_watch}[tool](machine, job, o, method, seed)
    causes = causes_of(document)
    expected = job.top if tool == "top" else job.expected
    verdict = find(document, "verdict") or {}
    row = {"job": job.name, "method": method, "tool": tool, "seed": seed, "result": judge(expected, causes, run.others),
           "causes": [cause[0] for cause in causes], "gain": causes[0][1], "certainty": verdict.get("certainty"),
           "others_cores": round(run.others, 2), "rate": run.result["rate"], "losses": run.result["losses"]}
    row["advice"] = advised(document)
    say(f"{row['result']:8} {tool:6} {job.name:16} {method:11} {row['certainty'] or '-':10} "
        f"{' '.join(row['causes'][:3]):44} others {row['others_cores']}")
    if row["result"] == "wrong" and o.verbose:
        say(json.dumps(verdict))
    if o.keep:
        Path(o.keep).mkdir(exist_ok=True)
        (Path(o.keep) / f"{job.name}.{method}.{tool}.{seed}.json").write_text(json.dumps(document))
    return row


def predictions(job, rows):
    """[(change, settings, advice of the table, predicted gain)]: the first setting that a tool advises, and the cause removed
    as in the job's table. The predicted gain of a part of the workers' time is that of half of it."""
    found = []
    first = rows[0]["advice"][:1]
    if first:
        ratios = [ratio or row["gain"] for row in rows for settings, ratio in row["advice"][:1] if settings == first[0][0]]
        found.append((" ".join(first[0][0]), first[0][0], None, [r for r in ratios if r]))
    advice = "half" if "half" in job.advices else "fixed"
    if advice in job.advices:
        found.append((advice, (), advice, [row["gain"] for row in rows if row["gain"]]))
    return [(change, settings, advice, statistics.median(ratios)) for change, settings, advice, ratios in found if ratios]


def gains(machine, rows, o, say):
    """Measured gains of jobs whose verdict was right, against what the tools predicted."""
    changes, predicted = {}, []
    for name in dict.fromkeys(row["job"] for row in rows):
        for tool in o.tools:
            mine = [row for row in rows if row["job"] == name and row["tool"] == tool and row["result"] == "right"]
            for change, settings, advice, ratio in predictions(JOBS[name], mine) if mine else ():
                changes[name, change] = JOBS[name], mine[0]["method"], settings, advice
                predicted.append((name, tool, change, ratio))

    def measure(job, method, settings, advice):
        ratio = gain_of(machine, job, o, method, range(o.repeats), settings, advice)
        say(f"measured {job.name:23} {' '.join(settings) or advice:24} {ratio:.2f}")
        return ratio

    measured = dict(zip(changes, on_slots(machine, o, measure, list(changes.values()))))
    results = []
    for name, tool, change, ratio in predicted:
        real = measured[name, change]
        results.append({"job": name, "tool": tool, "change": change, "predicted": ratio, "measured": round(real, 3)})
        say(f"gain     {tool:6} {name:16} {change:24} predicted {ratio:.2f}, measured {real:.2f}")
    for tool in o.tools:
        errors = sorted(abs(r["predicted"] / r["measured"] - 1) for r in results if r["tool"] == tool)
        if errors:
            say(f"gains of {tool}: {len(errors)}; median error {statistics.median(errors):.0%}, 90th percentile "
                f"{errors[min(len(errors) - 1, int(0.9 * len(errors)))]:.0%}")
    return results


def truths(machine, jobs, o, say):
    """Whether the slow part of each job is its slow part: measured gain of each change of its table."""
    results = []
    for job in jobs:
        for method in o.methods:
            for advice in job.advices:
                try:
                    machine.check(job)
                    real = gain_of(machine, job, o, method, range(o.repeats), (), advice)
                except Skipped as reason:
                    say(f"skipped  {job.name}: {reason}")
                    break
                results.append({"job": job.name, "method": method, "advice": advice, "measured": round(real, 3)})
                say(f"change   {job.name:16} {method:11} {advice:18} {real:.2f}")
    return results


def overhead(machine, jobs, o, say):
    """Rates with each tool over rates without: interleaved runs, medians."""
    def measure(job, method):
        rates = {"plain": [], **{tool: [] for tool in o.tools}}
        try:
            machine.check(job)
            for seed in range(o.repeats):
                order = list(rates)
                for what in order[seed % len(order):] + order[:seed % len(order)]:
                    run = {"plain": plain, "top": under_top, "watch": under_watch}[what](machine, job, o, method, seed)
                    rates[what].append((run[0] if what == "plain" else run[1].result)["rate"])
        except Skipped as reason:
            say(f"skipped  {job.name}: {reason}")
            return []
        results = []
        for tool in o.tools:
            pairs = [with_ / without for with_, without in zip(rates[tool], rates["plain"])]
            results.append({"job": job.name, "method": method, "tool": tool, "ratios": [round(p, 4) for p in pairs]})
            say(f"overhead {tool:6} {job.name:16} {method:11} {100 * (1 - statistics.median(pairs)):+.1f} % "
                f"(min {100 * (1 - max(pairs)):+.1f}, max {100 * (1 - min(pairs)):+.1f}, {len(pairs)} pairs)")
        return results

    tasks = [(job, method) for job in jobs for method in o.methods]
    return [result for results in on_slots(machine, o, measure, tasks) for result in results]


def run_one(machine, job, o, method, tool, seed, say):
    try:
        for _ in range(1 if o.quick else 3):
            row = judged(machine, job, o, method, tool, seed, say)
            if row["result"] != "crowded":
                break
        return row
    except RuntimeError as error:
        say(f"failed   {tool:6} {job.name:16} {method:11} {error}")
        return {"job": job.name, "method": method, "tool": tool, "seed": seed, "result": "failed", "causes": [], "gain": None,
                "error": str(error)}


def on_slots(machine, o, work, tasks):
    """Results of work(*task), each task beginning with its job. With --parallel N, N jobs run at once, on cores of their own;
    jobs that use all cores run alone."""
    size = max([task[0].cores for task in tasks] + [1])
    slots = queue.Queue()
    for i in range(min(o.parallel, len(machine.cores) // size) or 1):
        slots.put(machine.cores[i * size:(i + 1) * size])

    def on_a_slot(task):
        machine.thread.cores = slots.get()
        try:
            return work(*task)
        finally:
            slots.put(machine.thread.cores)

    with concurrent.futures.ThreadPoolExecutor(slots.qsize()) as pool:
        done = dict(zip(map(id, tasks), pool.map(lambda task: on_a_slot(task) if task[0].cores else None, tasks)))
    return [done[id(task)] if task[0].cores else on_a_slot(task) for task in tasks]


def run_all(machine, jobs, o, say):
    """Rows of all runs."""
    runs = []
    for seed in range(o.repeats):
        for method in o.methods:
            for job in jobs:
                try:
                    machine.check(job)
                    runs += [(job, method, tool, seed) for tool in o.tools]
                except Skipped as reason:
                    if seed == 0 and method == o.methods[0]:
                        say(f"skipped  {job.name}: {reason}")

    def run(job, method, tool, seed):
        try:
            return run_one(machine, job, o, method, tool, seed, say)
        except Skipped as reason:
            say(f"skipped  {job.name}: {reason}")

    return [row for row in on_slots(machine, o, run, runs) if row]


# From outside, workers are busy with something; from inside, with what.
BUSY_WITH = {"decode", "transform", "own-code", "read-cpu", "collate", "slow-file", "workers-saturated", "too-few-workers"}


def agree(watch, top, report):
    """Whether three first causes, of which one may be unsure, can be about the same job."""
    return watch == report and ("unsure" in (watch, top) or watch == top or {watch, top} <= BUSY_WITH or
                                {watch, top} <= {"step", "not-data-bound"})


def witnesses(machine, jobs, o, say):
    """The first causes that three tools name for the same run of each job."""
    def hear(job, method, seed):
        try:
            machine.check(job)
            documents, run = under_all(machine, job, o, method, seed)
        except (Skipped, RuntimeError) as reason:
            say(f"skipped  {job.name}: {reason}")
            return None
        first = {tool: causes_of(document)[0][0] for tool, document in documents.items()}
        certainty = (find(documents["top"], "verdict") or {}).get("certainty") or "-"
        same = agree(**first) or (first["watch"] == first["report"] in job.expected and first["top"] in job.top)
        say(f"{'agree' if same else 'CONTRARY':9} {job.name:16} watch {first['watch']:18} top {first['top']:18} ({certainty:6}) "
            f"report {first['report']:18} others {run.others:.2f}")
        return {"job": job.name, "method": method, "seed": seed, "agree": same, "certainty": certainty,
                "others_cores": round(run.others, 2), "right": first["watch"] in job.expected, **first}

    tasks = [(job, method, seed) for seed in range(o.repeats) for method in o.methods for job in jobs]
    rows = [row for row in on_slots(machine, o, hear, tasks) if row]
    say(f"{len(rows)} jobs: {sum(row['agree'] for row in rows)} agree; weir.watch is right about {sum(row['right'] for row in rows)}")
    return rows


def same_losses(rows, say):
    """Losses with a tool are those of other runs of the same job and seed. Returns the number of differences."""
    seen, different = {}, 0
    for row in rows:
        if "losses" not in row or row["job"] in ("slow-worker",):
            continue
        key = row["job"], row["seed"]
        known = seen.setdefault(key, row["losses"])
        n = min(len(known), len(row["losses"]))
        if known[:n] != row["losses"][:n]:
            different += 1
            say(f"losses of {row['job']}, seed {row['seed']}, differ under {row['tool']} ({row['method']})")
    return different


def summary(rows, o, say):
    say("")
    say(f"{'job':17} {'expected':34} " + " ".join(f"{tool:24}" for tool in o.tools))
    for name in dict.fromkeys(row["job"] for row in rows):
        cells = []
        for tool in o.tools:
            mine = [row["result"] for row in rows if row["job"] == name and row["tool"] == tool]
            cells.append(", ".join(f"{mine.count(r)} {r}" for r in ("right", "unsure", "crowded", "wrong", "failed") if r in mine))
        say(f"{name:17} {' or '.join(sorted(JOBS[name].expected)):34} " + " ".join(f"{cell:24}" for cell in cells))
    for tool in o.tools:
        mine = [row["result"] for row in rows if row["tool"] == tool]
        say(f"{tool}: " + ", ".join(f"{mine.count(r)} {r}" for r in ("right", "unsure", "crowded", "wrong", "failed")))


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=os.environ.get("WEIR_PROGRAM", "weir"), help="the program")
    parser.add_argument("--python", default=os.environ.get("WEIR_TORCH_PYTHON", sys.executable), help="a Python with torch")
    parser.add_argument("--pythonpath", default=os.environ.get("PYTHONPATH"), help="the folder of the package weir")
    parser.add_argument("--data", help="folder for the jobs' data, kept for later calls")
    parser.add_argument("--only", default="", help="jobs, separated by commas")
    parser.add_argument("--named", action="store_true", help="the jobs of the first group alone")
    parser.add_argument("--quick", action="store_true", help="a few jobs that are certain within seconds")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--method", default="fork", help="fork, spawn, forkserver; several separated by commas")
    parser.add_argument("--tools", default="top,watch")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warm-up", type=float, default=1.5)
    parser.add_argument("--parallel", type=int, default=1, help="jobs at once, each on cores of its own")
    parser.add_argument("--nice", type=int, default=0, help="niceness of the jobs: negative where others use the machine")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--truth", action="store_true", help="measure the changes of the table, without tools")
    parser.add_argument("--gains", action="store_true")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--witnesses", action="store_true")
    parser.add_argument("--json", help="file for all results")
    parser.add_argument("--keep", help="folder for the tools' documents")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    o = parser.parse_args()
    o.methods, o.tools = o.method.split(","), o.tools.split(",")
    return o


def choose(o):
    names = QUICK if o.quick else [name for name in o.only.split(",") if name]
    unknown = [name for name in names if name not in JOBS]
    if unknown:
        sys.exit(f"--only {unknown[0]}: no such job; --list prints them")
    jobs = [JOBS[name] for name in names] or [job for job in LIST if job.named or not o.named]
    return [job for job in jobs if not o.cuda or "cuda" in job.needs or names]


def main():
    o = options()
    jobs = choose(o)
    if o.list:
        for job in jobs:
            print(f"{job.name:17} {' or '.join(sorted(job.expected)):34} {', '.join(job.advices)}")
        return 0
    if o.quick and not o.data:
        with tempfile.TemporaryDirectory() as o.data:
            return judge_all(o, jobs)
    return judge_all(o, jobs)


def judge_all(o, jobs):
    machine = Machine(o)
    missing = {"torch", "numpy", "PIL"} - machine.has
    if missing:
        print(f"skipped: {o.python} has no {' and no '.join(sorted(missing))}")
        return 77
    say = lambda line: print(line, flush=True)
    say(f"torch {machine.torch}, {len(machine.cores)} cores, {', '.join(o.methods)}")
    result = {"torch": machine.torch, "cores": len(machine.cores)}
    status = 0
    if o.truth:
        result["truth"] = truths(machine, jobs, o, say)
    elif o.witnesses:
        rows = result["witnesses"] = witnesses(machine, jobs, o, say)
        status = int(not all(row["agree"] for row in rows))
    elif o.overhead:
        result["overhead"] = overhead(machine, jobs, o, say)
    else:
        rows = result["rows"] = run_all(machine, jobs, o, say)
        different = same_losses(rows, say)
        summary(rows, o, say)
        status = int(different or any(row["result"] in ("wrong", "failed") for row in rows))
        if o.gains:
            result["gains"] = gains(machine, rows, o, say)
    if o.json:
        Path(o.json).write_text(json.dumps(result, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main())
