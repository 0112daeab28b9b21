#!/usr/bin/env python3
"""Judges a scenario's GPU idle time, for scenario.sh: scenario_judge.py NAME SCENARIO REPORT [REPORT_WITH_FIX]. Reports
are the output of weir report --json. Exit status 1: the scenario's cause is not the first, or the fix does not remove
it. It must no longer be the first cause, or take less than half of its previous share of the time."""
import json
import sys

CAUSES = {"dataloader": "waiting for data", "sync": "synchronising", "tiny_ops": "launching", "memory_churn": "allocating"}


def shares(path):
    """(causes of idle time except measurement, in % of the time, largest first; kernels per step)"""
    with open(path) as f:
        devices = json.load(f)["traces"][0]["gpu_idle"]["devices"]
    if not devices:
        return [("none: the trace has no GPU", 0.0)], 0
    device = devices[0]
    causes = [(c["cause"], 100 * c["ns"] / device["wall_ns"]) for c in device["causes"] if c["cause"] != "measurement"]
    return sorted(causes, key=lambda c: -c[1]), device["kernels_per_step"]


def line(name, causes, kernels):
    text = ", ".join(f"{cause} {share:.1f} %" for cause, share in causes[:3])
    print(f"{name}: {text}; {kernels or 0:.1f} kernels a step")


def main():
    name, cause = sys.argv[1], CAUSES[sys.argv[2]]
    before, kernels = shares(sys.argv[3])
    line(name, before, kernels)
    fine = before[0][0] == cause
    if not fine:
        print(f"  {name}: {cause} is not the first cause")
    if len(sys.argv) > 4:
        after, kernels = shares(sys.argv[4])
        line(f"{name} --fix", after, kernels)
        if after[0][0] == cause and dict(after)[cause] >= dict(before).get(cause, 0) / 2:
            print(f"  {name} --fix: {cause} is still the first cause, {dict(after)[cause]:.1f} % of the time")
            fine = False
    sys.exit(0 if fine else 1)


main()
