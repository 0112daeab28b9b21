"""Created stacks.pt.trace.json.gz and stacks.tables.txt with torch 2.15.0 (CPU): make.py FOLDER"""
import gzip
import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

TABLES = [("sort_by=self_cpu_time_total row_limit=25", {}), ("sort_by=cpu_time_total row_limit=25", {}),
          ("sort_by=count row_limit=25", {}), ("sort_by=self_cpu_memory_usage row_limit=25", {}),
          ("group_by_input_shape sort_by=cpu_time_total row_limit=15", {"group_by_input_shape": True})]


def train(profiler):
    net = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    data = torch.utils.data.TensorDataset(torch.randn(8, 12), torch.randint(0, 2, (8,)))
    for x, y in torch.utils.data.DataLoader(data, batch_size=4):
        with record_function("forward"):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()


def main():
    trace = os.path.join(sys.argv[1], "stacks.pt.trace.json")
    torch.set_num_threads(1)
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
                 with_stack=True, record_shapes=True, profile_memory=True) as profiler:
        train(profiler)
    profiler.export_chrome_trace(trace)
    with open(trace, "rb") as plain, gzip.GzipFile(trace + ".gz", "wb", 9, mtime=0) as packed:
        packed.write(plain.read())
    os.remove(trace)
    with open(trace.replace(".pt.trace.json", ".tables.txt"), "w", encoding="utf-8") as file:
        for title, how in TABLES:
            sort, limit = (word.split("=")[1] for word in title.split()[-2:])
            file.write(f"## {title}\n{profiler.key_averages(**how).table(sort_by=sort, row_limit=int(limit))}\n")


if __name__ == "__main__":
    main()
