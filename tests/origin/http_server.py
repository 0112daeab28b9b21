"""A server of files for tests, with ranges, ETags and faults: http_server.py FOLDER SCRATCH serves over TLS, writes
the certificate to SCRATCH/certificate, prints the URL and ends with its input. Exit code 77: no openssl."""
import hashlib
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # the client was killed

    def __init__(self, root, tls_file=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.requests, self.faults, self.changed, self.stalled = root, 0, False, False, None
        self.signed = self.heads = self.ranges = self.stalls_at = self.stalls_after = 0
        self.moved = None  # URL of the server that has the files now
        self.validators, self.swapped = True, False  # files have ETags; half of each has other bytes
        self.lock = threading.Lock()
        self.url = f"http{'s' if tls_file else ''}://127.0.0.1:{self.server_port}"
        if tls_file:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls_file, f"{tls_file}.key")
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            if name != "ETag" or self.server.validators:
                self.send_header(name, value)
        self.end_headers()

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server = self.server
        with server.lock:
            server.requests += 1
            server.heads += self.command == "HEAD"
            server.signed += "Authorization" in self.headers
            n = server.requests
        if server.moved:
            self.head(302, {"Location": server.moved + self.path, "Content-Length": 0})
            return
        path = os.path.join(server.root, urllib.request.url2pathname(self.path.lstrip("/")))
        if self.path.endswith("/index.json"):
            names = [os.path.relpath(os.path.join(folder, name), os.path.dirname(path))
                     for folder, _, names in os.walk(os.path.dirname(path)) for name in names]
            body = json.dumps([*names, "../outside.weir.txt"]).encode()
            self.head(200, {"Content-Length": len(body), "Content-Type": "application/json"})
            self.wfile.write(body)
            return
        if not os.path.isfile(path):
            self.head(404, {"Content-Length": 0})
            return
        with open(path, "rb") as f:
            data = f.read()
        if server.swapped:
            data = data[:-len(data) // 2] + data[-len(data) // 2:].translate(bytes(b ^ 1 for b in range(256)))
        etag = '"' + hashlib.md5(data).hexdigest() + ("x" if server.changed else "") + '"'
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        with server.lock:
            server.ranges += wanted is not None
        if server.stalled is not None and wanted and int(wanted[1]) >= server.stalls_at and server.ranges > server.stalls_after:
            server.stalled.set()
            time.sleep(1000)
        if self.headers.get("If-Match") not in (None, etag):
            self.head(412, {"Content-Length": 0})
            return
        if self.command == "HEAD" or not wanted:
            self.head(200, {"Content-Length": len(data), "ETag": etag})
            if self.command == "GET":
                self.wfile.write(data)
            return
        if server.faults and n % 7 == 0:
            self.head(429 if n % 2 else 503, {"Content-Length": 0})
            return
        if server.faults and n % 11 == 0:  # a reset
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            return
        first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
        body = data[first:last + 1]
        self.head(206, {"Content-Length": len(body), "Content-Range": f"bytes {first}-{last}/{len(data)}", "ETag": etag})
        if server.faults and n % 13 == 0:  # a short body
            body = body[:len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)


def certificate(scratch, names="DNS:localhost,IP:127.0.0.1"):
    """Makes a certificate for this machine or other names, and its key. Returns the certificate's file, or None."""
    if not shutil.which("openssl"):
        return None
    path = f"{scratch}/certificate"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{path}.key", "-out", path, "-days", "2",
                    "-subj", "/CN=localhost", "-addext", f"subjectAltName={names}"], check=True, capture_output=True)
    return path


if __name__ == "__main__":
    tls = certificate(sys.argv[2])
    if not tls:
        sys.exit(77)
    print(Server(sys.argv[1], tls).url, flush=True)
    sys.stdin.read()
