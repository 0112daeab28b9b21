#!/usr/bin/env python3
"""Compares images/s from nginx at several latencies with those of the same file on this machine:
remote_rates.py WEIR PROXY FILE [--delays-ms 0,5,50] [--rounds N] [--cores 0,1 --server-cores 2-7] [-- OPTION...].
FILE: a packed dataset. PROXY: build/release/bench/delay_proxy. Rounds interleave all rates; medians are printed with
the ratio to the local rate of the same round. With --cores, the server and the proxies run on cores of their own."""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """daemon off; master_process off; pid {scratch}/pid; error_log {scratch}/log; worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000; open_file_cache max=100; {folders}
  server {{ listen 127.0.0.1:{port} backlog=1024; root {root}; }} }}
"""


def pinned(cores, command):
    return ["taskset", "-c", cores, *command] if cores else command


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_server(args, scratch, port):
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    path = f"{scratch}/nginx.conf"
    with open(path, "w", encoding="utf-8") as f:
        f.write(CONFIG.format(scratch=scratch, port=port, root=os.path.dirname(os.path.abspath(args.file)),
                              folders=" ".join(f"{kind}_temp_path {scratch}/temp;" for kind in kinds)))
    server = subprocess.Popen(pinned(args.server_cores, [args.nginx, "-e", f"{scratch}/log", "-c", path]),
                              stderr=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return server
        time.sleep(0.05)
    sys.exit(f"nginx does not start: {open(f'{scratch}/log', encoding='utf-8').read()}")


def start_proxy(args, port, delay_ms):
    proxy = subprocess.Popen(pinned(args.server_cores, [args.proxy, str(port), str(round(1000 * delay_ms))]),
                             stdout=subprocess.PIPE, text=True)
    return proxy, int(proxy.stdout.readline())


def measure(args, data):
    """The images/s of a run without its first epoch, and the report's figures of reading."""
    command = pinned(args.cores, [args.weir, "run", data, "--num-epochs", str(args.epochs), "--num-workers", "2", "--json",
                                  *args.options])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    report = json.loads(done.stdout)["report"]
    later = report["steps"]["later_epochs"]
    return later["images"] / later["s"], report["io"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("proxy")
    parser.add_argument("file")
    parser.add_argument("--delays-ms", default="0,5,50")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--cores")
    parser.add_argument("--server-cores")
    parser.add_argument("--nginx", default="/usr/sbin/nginx")
    parser.add_argument("options", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    args.options = args.options[1:] if args.options[:1] == ["--"] else args.options
    name, port = os.path.basename(args.file), free_port()
    with tempfile.TemporaryDirectory() as scratch:
        processes = [start_server(args, scratch, port)]
        ways = {"local": args.file}
        for delay in args.delays_ms.split(","):
            proxy, at = (None, port) if float(delay) == 0 else start_proxy(args, port, float(delay))
            processes += [proxy] if proxy else []
            ways[f"{delay} ms"] = f"http://127.0.0.1:{at}/{name}"
        rates, ios = {way: [] for way in ways}, {}
        try:
            for _ in range(args.rounds):
                for way, data in ways.items():
                    rate, ios[way] = measure(args, data)
                    rates[way].append(rate)
        finally:
            for process in processes:
                process.terminate()
    for way, values in rates.items():
        ratios = [value / local for value, local in zip(values, rates["local"])]
        print(f"{way:8} {statistics.median(values):8.0f} images/s, {statistics.median(ratios):.2f} of local "
              f"({min(ratios):.2f} to {max(ratios):.2f})", {k[7:]: v for k, v in ios[way].items() if k.startswith("server_")})


if __name__ == "__main__":
    main()
