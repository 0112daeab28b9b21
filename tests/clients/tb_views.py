"""Loads a trace with the back end of TensorBoard's PYTORCH_PROFILER plugin (torch-tb-profiler 0.4.3), and checks that
its views show the run:

    tb_views.py FILE.pt.trace.json[.gz] [--expect-dataloader PERCENT] [--tolerance POINTS]
"""
import argparse
import logging
import os
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
for missing in ("boto3", "botocore"):  # the plugin would import these if installed
    sys.modules.setdefault(missing, None)
from torch_tb_profiler import consts
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator


class Complaints(logging.Handler):
    """Errors logged by the plugin: dropped events."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def load(path):
    name = consts.WORKER_PATTERN.match(os.path.basename(path))
    assert name, f"{path}: the plugin requires names like HOST_PID.UNIXNS.pt.trace.json.gz"
    with tempfile.TemporaryDirectory() as cache:
        data = RunProfileData.parse(name[1], (name[2] or ".")[1:] or None, path, cache)
        return data, RunGenerator(name[1], name[2], data).generate_run_profile()


def shares(profile):
    """(us of the mean step, {category: percent of it})"""
    step = profile.overview["performance"][0]
    return float(step["value"]), {part["name"]: float(part["extra"]) for part in step["children"]}


def check_overview(data, profile):
    mean_us, parts = shares(profile)
    assert data.steps_names, "no steps"
    assert mean_us > 0, "steps take no time"
    assert abs(sum(parts.values()) - 100) < 0.5, f"the parts of a step are {sum(parts.values())} % of it"
    print(f"steps {data.steps_names[0]} to {data.steps_names[-1]}, mean {mean_us:.0f} us: "
          + ", ".join(f"{name} {share:.2f} %" for name, share in parts.items() if share > 0))
    return parts


def check_operators(profile):
    rows = profile.operation_table_by_name["data"]
    assert rows, "the Operator view is empty"
    for row in rows:
        assert row["calls"] > 0 and 0 <= row["host_self_duration"] <= row["host_total_duration"], row
    print("operators: " + ", ".join(f"{row['name']} {row['calls']}x" for row in rows[:6]))


def check_memory(profile):
    stats = profile.get_memory_stats()["rows"]
    assert any(stats.values()), "the Memory view is empty"
    print("memory of: " + ", ".join(device for device, rows in stats.items() if rows))


def check_gpu(profile):
    summary = {row["title"]: row["value"] for row in profile.gpu_summary}
    rows = profile.kernel_table["data"]["rows"]
    assert rows, "the Kernel view is empty"
    assert float(summary["GPU Utilization"].split()[0]) > 0, summary
    print(f"GPU: {summary['Name']}, busy {summary['GPU Utilization']}, {len(rows)} kernels")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--expect-dataloader", type=float)
    parser.add_argument("--tolerance", type=float, default=1)
    given = parser.parse_args()
    complaints = Complaints()
    logging.getLogger("torch_tb_profiler").addHandler(complaints)
    data, profile = load(given.file)
    views = [view.display_name for view in profile.views]
    for wanted in ("Overview", "Operator", "Trace"):
        assert wanted in views, f"no {wanted} view, only {views}"
    parts = check_overview(data, profile)
    check_operators(profile)
    if "Memory" in views:
        check_memory(profile)
    if "Kernel" in views:
        check_gpu(profile)
    assert not complaints.texts, f"the plugin complains: {complaints.texts[:3]}"
    if given.expect_dataloader is not None:
        off = abs(parts["DataLoader"] - given.expect_dataloader)
        assert off <= given.tolerance, f"DataLoader is {parts['DataLoader']} %, not {given.expect_dataloader} %"
    print(f"views: {', '.join(views)}")


if __name__ == "__main__":
    main()
