#!/usr/bin/env python3
"""The page of --html. A run and a later report of its log make the same page. Its policy allows only its own script and
style sheet, and images in data: URLs. The logs of several ranks make one page. An output file is never an input.
Comparisons make pages too.

With --browser, which CI runs once, the pages are also opened in Chromium (page_check.py). This needs a run of
tests/clients/setup.sh.

    test_page.py WEIR [--browser]"""

import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "build/clients-venv/bin/python"
HOSTILE = "</script><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)>\"'&"


def weir(program, *arguments, status=0):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def sum_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def check_policy(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    scripts, styles = re.findall(r"<script>(.*?)</script>", page, re.S), re.findall(r"<style>(.*?)</style>", page, re.S)
    assert len(scripts) == len(styles) == 1
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy, policy
    assert f"script-src '{sum_of(scripts[0])}'" in policy and f"style-src '{sum_of(styles[0])}'" in policy, policy
    assert not re.search(r'(src|href|action)="(?!data:,")', page) and "style=\"" not in page


def check_run(program, work):
    """Returns the page of a run with a timeline."""
    weir(program, "synth", "data", "--episodes", "3", "--steps", "40", "--size", "64x48")
    weir(program, "run", "data", "--num-epochs", "4", "--every", "1", "--step-ms", "8", "--num-workers", "2",
         "--batch-size", "4", "--log", "run.jsonl", "--profile", "traces", "--html", "run.html")
    weir(program, "report", "run.jsonl", "--html", "again.html")
    page = (work / "run.html").read_text()
    assert page == (work / "again.html").read_text(), "the report's page differs"
    for part in ("<h1>data</h1>", "What limits", "Over time", "03b_image_decode", "Latency", "Threads",
                 'class="timeline"', "config.batch_size"):
        assert part in page, part
    check_policy(page)
    weir(program, "run", "data", "--num-epochs", "1", "--html", "alone.html", "--lang", "zh")  # no log file needed
    assert "设置与机器" in (work / "alone.html").read_text()
    return "run.html"


def check_ranks(program, work):
    """Returns the page of three ranks, whose texts are hostile."""
    lines = [json.loads(line) for line in (work / "run.jsonl").read_text().splitlines()]
    for rank in range(3):
        lines[0]["used"].update(rank=rank, world_size=3, host=HOSTILE)
        lines[0]["config"]["data"] = HOSTILE
        for line in lines:
            for row in line.get("stages", []) + line.get("cameras", []):
                row["name"] = row["name"] + HOSTILE[:20]
        (work / f"r.rank{rank}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    weir(program, "report", "r.rank0.jsonl", "r.rank1.jsonl", "r.rank2.jsonl", "--html", "ranks.html")
    page = (work / "ranks.html").read_text()
    assert page.count("<article>") == 3 and "<h2>Ranks</h2>" in page
    check_policy(page)
    return "ranks.html"


def check_comparison(program, work):
    """Returns the page of a comparison, with a hostile file name."""
    name = "<script>alert(1)<img src=x onerror=alert(2)>.jsonl"
    (work / name).write_bytes((work / "run.jsonl").read_bytes())
    weir(program, "compare", "run.jsonl", name, "--html", "compare.html")
    page = (work / "compare.html").read_text()
    assert "03b_image_decode" in page
    check_policy(page)
    return "compare.html"


def open_in_browser(program, pages):
    weir(program, "bench", "data", "--formats", "as-is,hdf5:raw", "--cache", "warm", "--repeats", "1", "--min-seconds",
         "0.02", "--max-minutes", "5", "--html", "bench.html")
    subprocess.run([CLIENTS, ROOT / "tests/clients/page_check.py", *pages, "bench.html"], check=True)


def check_plain_log(program, work):
    """A plain log with stage tables has a page with the lines of its report."""
    rows = "".join(f"{name} | 总计: {total}s | 调用: 9次 | 平均: 1.00ms\n" for name, total in
                   (("03b_image_decode", 8), ("20_train_forward_pass", 60), ("21_backward", 20)))
    (work / "act.log").write_text("⏱️  性能分析统计\n" + rows)
    report = weir(program, "report", "act.log", "--html", "act.html", "--wide").stdout
    page = (work / "act.html").read_text()
    advice = next(line for line in report.splitlines() if "hidden_dim" in line)
    assert advice.split("  ")[-1].strip() in page, (advice, page)
    check_policy(page)


def check_refusals(program, work):
    log = (work / "run.jsonl").read_text()
    assert "same file" in weir(program, "report", "run.jsonl", "--html", "run.jsonl", status=2).stderr
    assert "same file" in weir(program, "run", "data", "--log", "x", "--html", "x", status=2).stderr
    assert (work / "run.jsonl").read_text() == log
    (work / "train.log").write_text("step:10 smpl:80 ep:1 epch:0.10 loss:0.1 grdn:1 lr:1e-4 updt_s:0.5 data_s:0.1\n" * 4)
    refused = weir(program, "report", "train.log", "--html", "no.html", status=1)
    assert "is no log of weir run" in refused.stderr and not (work / "no.html").exists(), refused.stderr


def main():
    program, browser = str(pathlib.Path(sys.argv[1]).resolve()), "--browser" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        os.chdir(work)
        pages = [check_run(program, work), check_ranks(program, work), check_comparison(program, work)]
        check_plain_log(program, work)
        check_refusals(program, work)
        if browser:
            open_in_browser(program, pages)


if __name__ == "__main__":
    main()
