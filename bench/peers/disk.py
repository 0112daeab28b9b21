"""Cold reads of the same files, bypassing the page cache: fio's bandwidth in blocks of a JPEG's size, and Weir's if
this build supports it."""
import json
import os
import shutil
import subprocess


def fio(paths, block_bytes, cores, seconds):
    """MB/s, or a line with the reason why not."""
    if not shutil.which("fio"):
        return "fio is not installed"
    why = ""
    for engine in ("io_uring", "libaio", "psync"):
        done = subprocess.run(["fio", "--name=cold", "--filename=" + ":".join(map(os.path.abspath, paths)), "--readonly",
                               "--rw=randread", f"--bs={block_bytes}", "--direct=1", f"--ioengine={engine}",
                               "--iodepth=8", f"--numjobs={cores}", "--time_based", f"--runtime={max(1, round(seconds))}",
                               "--group_reporting", "--output-format=json"], capture_output=True, text=True)
        if done.returncode == 0:
            job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
            return job["read"]["bw_bytes"] / 1e6
        why = (done.stderr.strip() or done.stdout.strip() or "fio failed").splitlines()[0]
    return f"fio does not read these files with O_DIRECT: {why}"


def weir(program, data, seconds):
    """MB/s, or a line with the reason why not."""
    if "--direct" not in subprocess.run([program, "run", "--help-all"], capture_output=True, text=True).stdout:
        return "this weir run has no --direct"
    epochs, rate = 2, None
    while True:
        done = subprocess.run([program, "run", data, "--io", "uring", "--direct", "--decoder", "null", "--train-split",
                               "1", "--every", "0", "--log", "-", "--num-epochs", str(epochs)], capture_output=True, text=True)
        if done.returncode != 0:
            return (done.stderr.strip() or "weir failed").splitlines()[-1]
        final = [json.loads(line) for line in done.stdout.splitlines() if '"type":"stages"' in line][-1]
        rate, spent_s = final["io"]["read_bytes"] / final["wall_s"] / 1e6, final["wall_s"]
        if spent_s >= seconds or epochs > 4096:
            return rate
        epochs *= max(2, min(16, round(seconds / spent_s)))
