"""Runs HolisticTraceAnalysis on a folder with one trace: hta_check.py DIR

Parsing, steps and call graph must work on every trace. GPU analyses run only if the trace has kernels, because they
fail on an empty table.
"""
import logging
import os
import sys
import warnings

warnings.filterwarnings("ignore")
# HTA's default rounding to whole us makes shorter ranges end before they start, and its call graph fails.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
logging.disable(logging.WARNING)
from hta.common.trace_call_graph import CallGraph
from hta.trace_analysis import TraceAnalysis


def names_of(analysis):
    return analysis.t.get_trace(0).name.map(lambda symbol: analysis.t.symbol_table.sym_table[symbol])


def check_steps(analysis):
    steps = [int(step) for step in analysis.get_profiler_steps()]
    assert steps == list(range(steps[0], steps[0] + len(steps))), f"steps {steps}"
    trace = analysis.t.get_trace(0)
    rows = trace[names_of(analysis).str.match(r"ProfilerStep\s*#\s*\d+")]
    assert len(rows) == len(steps) and (rows.dur > 0).all(), rows
    ends = (rows.ts + rows.dur).to_numpy()
    assert (ends[:-1] <= rows.ts.to_numpy()[1:]).all(), "steps overlap"
    print(f"steps {steps[0]} to {steps[-1]} of {len(trace)} events, mean {rows.dur.mean():.0f} us")
    return trace


def check_call_graph(analysis):
    stacks = CallGraph(analysis.t).call_stacks
    assert stacks, "no call stacks"
    print(f"call stacks of {len(stacks)} rows")


def check_gpu(analysis):
    def frame(name, table):
        assert table is not None and len(table) > 0, f"{name}: empty"
        print(f"{name}: {len(table)} rows")

    frame("temporal breakdown", analysis.get_temporal_breakdown(visualize=False))
    kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
    frame("kernel types", kinds)
    frame("kernels", kernels)
    frame("idle time", analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0])
    frame("launches", analysis.get_cuda_kernel_launch_stats(visualize=False)[0])
    frame("queue length", analysis.get_queue_length_summary())
    if names_of(analysis).str.match(r"Mem(?:cpy|set)\b").any():
        frame("memory bandwidth", analysis.get_memory_bw_summary())
    frame("overlap", analysis.get_comm_comp_overlap(visualize=False))
    annotations = analysis.get_gpu_user_annotation_breakdown(visualize=False)
    frame("annotations on the GPU", annotations)
    kernels = analysis.get_gpu_kernels_with_user_annotations(0)
    frame("kernels with annotations", kernels)
    owners = set(kernels.s_user_annotation) - {""}
    assert owners and owners <= set(annotations.name), f"kernels of {owners}, annotations {set(annotations.name)}"
    graph, found = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
    assert found and graph.critical_path_nodes, "no critical path"
    print(f"critical path: {len(graph.critical_path_nodes)} nodes")


def main():
    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    trace = check_steps(analysis)
    check_call_graph(analysis)
    # HTA identifies GPU activities by stream and correlation
    if ((trace.stream >= 0) & (trace.correlation >= 0)).any():
        check_gpu(analysis)
    else:
        print("no GPU in this trace: the analyses of kernels, idle time and the critical path were not run")


if __name__ == "__main__":
    main()
