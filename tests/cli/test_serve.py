#!/usr/bin/env python3
"""weir run --serve and --prometheus: answers to good, wrong and hostile requests, which end neither the run nor the
server and leave memory bounded; the file; errors.

    test_serve.py WEIR"""

import http.client
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import checks
from checks import check

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
except ImportError:
    openmetrics = None

TIMEOUT_S, CONNECTIONS, MEMORY_KIB = 240, 1000, 32 << 10
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"}
SAMPLE = re.compile(r'([a-z_0-9]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)')


def eventually(function):
    """The function's first true result."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        try:
            found = function()
        except (OSError, http.client.HTTPException):
            found = None
        if found:
            return found
        time.sleep(0.05)
    return None


class Run:
    """weir run with --serve on a free port."""

    def __init__(self, weir, arguments, address="127.0.0.1"):
        # A sanitizer keeps freed memory, by default 256 MiB of it.
        options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4"
        self.process = subprocess.Popen([weir, "run", *arguments, "--serve", f"{address}:0"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, ASAN_OPTIONS=options))
        self.host, self.err, self.out = address.strip("[]"), [], []
        line = self.process.stderr.readline()
        self.err.append(line)
        found = re.match(r"live figures: http://\S+:(\d+)/$", line)
        self.port = int(found[1]) if found else 0
        self.threads = [threading.Thread(target=self.read, args=parts, daemon=True)
                        for parts in ((self.process.stderr, self.err), (self.process.stdout, self.out))]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def read(stream, lines):
        lines.extend(stream)

    def ask(self, path, method="GET", headers={}, body=None):
        client = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            client.request(method, path, body, headers)
            answer = client.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
        finally:
            client.close()

    def batches(self):
        return sum(value for name, labels, value in samples(self.ask("/metrics")[2]) if name == "weir_batches_total")

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s*(\d+)", file.read())[1])

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=60)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(TIMEOUT_S)
        for thread in self.threads:
            thread.join()
        return status, "".join(self.out), "".join(self.err)


def samples(text):
    found = [SAMPLE.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    return [(match[1], match[2] or "", float(match[3])) for match in found if match]


def check_metrics(text, counter_suffix):
    """HELP and TYPE come before each metric's samples, which differ in name and labels."""
    lines, types, seen = text.splitlines(), {}, set()
    check("no line is malformed", all(line.startswith("#") or SAMPLE.fullmatch(line) for line in lines), text)
    for line in lines:
        if line.startswith("# TYPE "):
            types[line.split()[2]] = line.split()[3]
        elif not line.startswith("#"):
            name = SAMPLE.fullmatch(line)[1]
            family = name if name in types else re.sub("_(total|info)$", "", name)
            check(f"{name} has a type", family in types, line)
            check(f"{name} is a counter, or none", (types.get(family) == "counter") == name.endswith("_total"), line)
            check(f"{line} occurs once", line.rpartition(" ")[0] not in seen)
            seen.add(line.rpartition(" ")[0])
    check("HELP of all", {line.split()[2] for line in lines if line.startswith("# HELP ")} == set(types), text)
    check("names of counters", all(name.endswith("_total") == counter_suffix for name, kind in types.items()
                                   if kind == "counter"), types)


def test_answers(run):
    check("batches are counted", eventually(lambda: run.batches() > 0))
    check("steps are counted", eventually(lambda: "weir_data_wait_ratio{" in run.ask("/metrics")[2]))
    status, headers, text = run.ask("/metrics")
    check("classic format", status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4"), headers)
    check_metrics(text, True)
    names = {name for name, labels, value in samples(text)}
    check("names", {"weir_stage_seconds_total", "weir_data_wait_ratio", "weir_read_bytes_total", "weir_batches_ready",
                    "weir_workers", "weir_skipped_samples_total", "weir_build_info"} <= names, names)
    check("stages", 'stage="03b_image_decode"' in text, text)
    status, headers, text = run.ask("/metrics", headers=OPENMETRICS)
    check("OpenMetrics", status == 200 and headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
          and text.endswith("\n# EOF\n"), headers)
    check_metrics(text, False)
    if openmetrics is not None:
        check("a strict parser reads it", len(list(openmetrics(text))) > 20)
    check("the page has a verdict", eventually(lambda: "Training waited for data" in run.ask("/")[2]))
    status, headers, text = run.ask("/")
    check("the page", status == 200 and "03b_image_decode" in text, text)
    check("the page is loaded again", headers.get("refresh") == "10", headers)
    check("the page loads nothing", "default-src 'none'" in headers["content-security-policy"], headers)
    full = len(run.ask("/metrics")[2])
    status, headers, text = run.ask("/metrics", "HEAD")
    check("HEAD", status == 200 and text == "" and abs(int(headers["content-length"]) - full) < 500, headers)
    for path in ("/metric", "/metrics/", "/../metrics", "//", "/%2fmetrics", "/favicon.ico"):
        check(path, run.ask(path)[0] == 404)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "X"):
        status, headers, text = run.ask("/metrics", method)
        check(method, status == 405 and headers.get("allow") == "GET, HEAD", (status, headers))
    for host, expected in (("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:9464", 200), ("evil.example", 403),
                           ("evil.example:9464", 403), ("127.0.0.1.evil.example", 403)):
        check(f"Host: {host}", run.ask("/metrics", headers={"Host": host})[0] == expected)


def send_all(run, parts):
    """Sends until the server has had enough, and returns the beginning of its answer."""
    with run.connect() as client:
        try:
            for part in parts:
                client.sendall(part)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            return client.recv(64)
        except OSError:
            return b""


def test_hostile(run):
    before, began = run.batches(), run.memory_kib()
    clients = []
    for i in range(CONNECTIONS):  # half requests, of which most wait for a place
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.setblocking(False)
        client.connect_ex((run.host, run.port))
        clients.append(client)
    for client in clients:
        try:
            client.send(b"GET /metrics HTTP/1.1\r\nHost: local")
        except OSError:
            pass
    for client in clients:
        client.close()
    check("answers after half requests", eventually(lambda: run.ask("/metrics")[0] == 200))
    long = b"x" * 65536
    answer = send_all(run, [b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "] + [long] * 160)
    check("10 MB of a header", b" 200 " not in answer, answer)
    answer = send_all(run, [b"GET /"] + [long] * 160)
    check("10 MB of a path", b" 200 " not in answer, answer)
    answer = send_all(run, [b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10485760\r\n\r\n"] + [long] * 160)
    check("10 MB of a body", not answer or b" 405 " in answer, answer)
    for text in (b"\0" * 1000, b"GET\r\n\r\n", b"\r\n" * 5000, b"GET /metrics HTTP/9.9\r\n\r\n", bytes(range(256)) * 16,
                 b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"):
        send_all(run, [text])
    with run.connect() as client:  # that sends nothing more, and reads
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    check("a client that has finished sending", answer.rstrip().endswith(b"</html>"), answer[-200:])
    readers = [run.connect() for _ in range(20)]  # that never read their answers
    for client in readers:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for client in readers:
        client.close()
    check("answers afterwards", eventually(lambda: run.ask("/metrics")[0] == 200))
    check("the run continues", eventually(lambda: run.batches() > before))
    check("memory", run.memory_kib() - began < MEMORY_KIB, (began, run.memory_kib()))


def test_file(weir, data, folder):
    path = os.path.join(folder, "m.prom")
    done = subprocess.run([weir, "run", data, "--num-epochs", "3", "--max-batches", "4", "--prometheus", path],
                          capture_output=True, text=True, timeout=TIMEOUT_S)
    check("a run with a file", done.returncode == 0, done.stderr)
    with open(path) as file:
        text = file.read()
    check_metrics(text, True)
    found = {name + labels: value for name, labels, value in samples(text)}
    check("all epochs", found.get('weir_epochs_total{loader="eps"}') == 3, text)
    check("all batches", found.get('weir_batches_total{loader="eps",split="train"}') == 12, text)
    check("nothing is left beside it", os.listdir(folder) == ["m.prom"], os.listdir(folder))
    environment = dict(os.environ, RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
    done = subprocess.run([weir, "run", data, "--num-epochs", "1", "--max-batches", "2", "--prometheus", path],
                          capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)
    with open(os.path.join(folder, "m.rank1.prom")) as file:
        check("a file per rank", done.returncode == 0 and 'rank="1"' in file.read(), done.stderr)
    done = subprocess.run([weir, "run", data, "--prometheus", folder + "/missing/m.prom"], capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    check("no such folder", done.returncode == 1 and "missing/m.prom" in done.stderr.splitlines()[-1], done.stderr)


def test_errors(weir, data):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = [(f"127.0.0.1:{port}", 1, "the port is in use"), ("127.0.0.1", 2, "has no port"),
                 ("here:1", 2, "is not a numeric address"), ("192.0.2.1:9464", 1, "has no such address")]
        for address, status, text in cases:
            done = subprocess.run([weir, "run", data, f"--serve={address}"], capture_output=True, text=True,
                                  timeout=TIMEOUT_S)
            check(f"--serve={address}", done.returncode == status and text in done.stderr
                  and done.stderr.count("\n") == 1, done.stderr)


def has_server(weir):
    return "built without libmicrohttpd" not in subprocess.run([weir, "doctor"], capture_output=True, text=True,
                                                               env=dict(os.environ, COLUMNS="1000")).stdout


def main(weir):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    global CONNECTIONS
    if hard != resource.RLIM_INFINITY:
        CONNECTIONS = min(CONNECTIONS, hard - 100)
    with tempfile.TemporaryDirectory() as folder:
        data, out = os.path.join(folder, "eps"), os.path.join(folder, "out")
        os.mkdir(out)
        subprocess.run([weir, "synth", data, "--episodes", "3", "--steps", "20", "--size", "64x48"], check=True,
                       capture_output=True)
        test_file(weir, data, out)
        if not has_server(weir):
            print("skipped: weir was built without libmicrohttpd")
            return 1 if checks.failures else 77
        run = Run(weir, [data, "--num-epochs", "1000000", "--step-ms", "2", "--every", "0"])
        test_answers(run)
        test_hostile(run)
        status, out, err = run.end()
        check("the run ends normally", status == 130 and "verdict: " in out, (status, out, err))
        test_errors(weir, data)
        if socket.has_ipv6:
            try:
                socket.create_server(("::1", 0), family=socket.AF_INET6).close()
            except OSError:
                print("IPv6 is not tested: this machine has no ::1")
            else:
                run = Run(weir, [data, "--num-epochs", "1000000", "--step-ms", "2"], "[::1]")
                check("IPv6", eventually(lambda: run.batches() > 0))
                run.end()
    return checks.failed()


sys.exit(main(*sys.argv[1:]))
