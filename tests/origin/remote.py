"""Datasets on servers: remote.py WEIR. Compares runs over HTTP and S3 with local ones, batch by batch.

Uses a server of its own with faults, nginx where it is installed, and moto's S3 server where
build/readers-venv (tests/readers/setup.sh) or the Python of WEIR_MOTO has it."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from http_server import Server, certificate

weir = os.path.abspath(sys.argv[1])
MOTO_PYTHON = os.environ.get("WEIR_MOTO", os.path.join(os.path.dirname(__file__), "../../build/readers-venv/bin/python"))
environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
environment.update(HOME="/nonexistent", AWS_EC2_METADATA_DISABLED="true")


def run(*args, env=None, code=0):
    done = subprocess.run([weir, *args], env={**environment, **(env or {})}, capture_output=True, text=True, timeout=120, check=False)
    assert code is None or done.returncode == code, f"weir {' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def checksums(data, folder, *args, env=None):
    """The checksums of all batches of two epochs."""
    path = os.path.join(folder, "checksums")
    text = run("run", data, "--num-epochs=2", "--seed=3", "--num-workers=2", f"--checksums={path}", *args, env=env)
    with open(path, encoding="utf-8") as f:
        return f.read(), text


def check_faults(root, local, scratch):
    server = Server(root)
    for name in ("one.weir", "tf", "h5"):
        remote, text = checksums(f"{server.url}/{name}", scratch)
        assert remote == local, f"{name}: other batches over HTTP"
        assert "the files are on a server" in text and "03l_first_byte" in text and re.search(r"server: [1-9]\d* requests, and \d+ to open", text), text
    listed, _ = checksums(f"{server.url}/tf/index.json", scratch)
    assert listed == local, "other batches from a list"
    server.faults, refused = True, 0
    for name in ("one.weir", "h5"):
        faulty, text = checksums(f"{server.url}/{name}", scratch)
        assert faulty == local, f"{name}: other batches from a server with faults"
        limit = re.search(r"(\d+) refused by a limit .* in flight on average, at most (\d+) at the end", re.sub(r"\s+", " ", text))
        assert limit and (limit[1] == "0" or int(limit[2]) < 64), f"refusals do not lower the requests in flight: {text}"
        refused += int(limit[1])
    assert refused > 0, "the server refused nothing"
    server.faults = False
    before = server.requests
    index = os.path.join(scratch, "index")
    run("info", f"{server.url}/one.weir")
    run("run", f"{server.url}/one.weir", "--num-epochs=1", "--max-batches=1", f"--index={index}", "--io-depth=1")
    opened = server.requests - before
    before = server.requests
    again, _ = checksums(f"{server.url}/one.weir", scratch, f"--index={index}")
    assert again == local and opened > 3, (opened, server.requests - before)
    server.changed = True
    changed, _ = checksums(f"{server.url}/one.weir", scratch, f"--index={index}")
    assert changed == local, "a new ETag is a new file"
    server.changed = False
    return server


def check_opening(server, scratch):
    """With an index file, opening takes a request for the list, one HEAD per file, and two that look for datasets that
    are folders."""
    args = ["run", f"{server.url}/h5", "--num-epochs=1", f"--index={os.path.join(scratch, 'opened')}"]
    run(*args)
    server.heads = 0
    text = run(*args)
    assert re.search("server: [1-9]\\d* requests, and 6 to open", text) and server.heads == 5, (server.heads, text)


def check_links(root, server):
    """An HDF5 file on a server that refers to a file of this machine."""
    try:
        import h5py  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("h5py is not installed: links are not tested")
        return
    os.makedirs(f"{root}/links")
    shutil.copy(f"{root}/h5/episode_0.hdf5", f"{root}/links/a.hdf5")
    with h5py.File(f"{root}/links/a.hdf5", "a") as f:
        del f["observations/qpos"]
        f["observations/qpos"] = h5py.ExternalLink(f"{root}/h5/episode_0.hdf5", "/observations/qpos")
    run("run", f"{root}/links", "--num-epochs=1", "--allow-external")
    for args in ([], ["--allow-external"]):
        text = run("run", f"{server.url}/links/a.hdf5", "--num-epochs=1", *args, code=1)
        assert "may not refer to" in text, text


def check_anonymous(server, local, scratch):
    """Path style at an endpoint of one's own, with and without a signature."""
    keys = {"AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_SESSION_TOKEN": "hidden too"}
    for args, env, is_signed in [(["--anonymous"], keys, False), ([], keys, True)]:
        server.signed = 0
        remote, text = checksums("s3://sub-folder/a/copy of it.weir", scratch,
                                 f"--endpoint={server.url}", *args, env=env)
        assert remote == local and (server.signed > 0) == is_signed and "hidden" not in text, (server.signed, text)


def check_redirects(server, root, local, scratch):
    """A redirect to another server is followed, but not with credentials."""
    other = Server(root)
    server.moved = other.url
    moved, _ = checksums(f"{server.url}/one.weir", scratch)
    assert moved == local and other.requests > 0
    other.requests = 0
    env = {"AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "hidden"}
    text = run("run", "s3://sub-folder/one.weir", "--num-epochs=1", f"--endpoint={server.url}", env=env, code=1)
    assert "credentials are not sent" in text and "hidden" not in text and other.requests == 0, text
    server.moved = None


def check_certificates(root, local, scratch):
    """A trusted certificate, one of an unknown authority, and one of another host."""
    trusted = certificate(scratch)
    if not trusted:
        print("openssl is not installed: certificates are not tested")
        return
    os.makedirs(f"{scratch}/other")
    other = certificate(f"{scratch}/other", "DNS:other.example")
    url = f"{Server(root, trusted).url}/one.weir"
    remote, _ = checksums(url, scratch, env={"CURL_CA_BUNDLE": trusted})
    assert remote == local, "other batches over TLS"
    text = run("doctor", env={"CURL_CA_BUNDLE": trusted, "COLUMNS": "1000"})
    assert re.search(f"servers +yes +libcurl .*, certificates in {trusted}\n", text), text
    for data, authority in [(url, other), (f"{Server(root, other).url}/one.weir", other), (url, f"{scratch}/missing")]:
        text = run("run", data, "--num-epochs=1", env={"CURL_CA_BUNDLE": authority}, code=1)
        assert "certificate is not trusted" in text and "CURL_CA_BUNDLE" in text, text


def check_unnoticed(root, local, scratch):
    """A server without ETag and Last-Modified: one line, and an error when a file changes between epochs."""
    server = Server(root)
    server.validators = False
    index = os.path.join(scratch, "unnoticed")
    for args in ([], [f"--index={index}"], [f"--index={index}"], [f"--cache={scratch}/unnoticed-cache:64M"], ["--io-depth=1"]):
        remote, text = checksums(f"{server.url}/one.weir", scratch, *args)
        assert remote == local and text.count("states no ETag and no Last-Modified") == 1, text
    for args in ([], ["--io-depth=1"]):
        server.swapped = False
        with subprocess.Popen([weir, "run", f"{server.url}/one.weir", "--num-epochs=1000000", "--num-workers=2", *args], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            while not process.stdout.readline().startswith("epoch 2/"):
                assert process.poll() is None
            server.swapped = True  # the same size and, in half of the file, other bytes
            text, _ = process.communicate(timeout=100)
            assert process.returncode == 1 and "one.weir" in text and "the file changed since it was opened" in " ".join(text.split()), text


def check_refusals(server):
    cases = [(f"{server.url}/one.weir", ["--direct"], "omit --direct"), (f"{server.url}/one.weir", ["--cold"], "without --cold"),
             (f"{server.url}/one.weir", ["--io=pread"], "use --io http"), (f"{server.url}/missing.weir", [], "no such file"),
             (f"{server.url}/data.mdb", [], "cannot be read from a server"), (f"http://x:hidden@{server.url[7:]}/one.weir", [], "user name"),
             ("s3://bucket/one.weir", [], "no credentials")]
    for data, args, words in cases:
        text = run("run", data, "--num-epochs=1", *args, code=1)
        assert words in text and "hidden" not in text, text


def ranges_of(server, work):
    """Runs work(). Returns its result and the number of requests for ranges, which are all but the facts of files."""
    before = server.ranges
    return work(), server.ranges - before


def cache_figures(url, *args):
    done, _ = json.JSONDecoder().raw_decode(run("run", url, "--num-epochs=1", "--json", *args))
    return {name[6:]: value for name, value in done["report"]["io"].items() if name.startswith("cache_")}


def check_cache(server, local, scratch):
    cache = f"{scratch}/cache"
    for name in ("one.weir", "h5"):
        url, option = f"{server.url}/{name}", f"--cache={cache}:64M"
        filled, text = checksums(url, scratch, option)
        assert filled == local and " stored" in text
        (again, text), n = ranges_of(server, lambda u=url, o=option: checksums(u, scratch, o))
        assert again == local and n == 0 and "server: 0 requests" in text and "(100 %), 0 bytes stored" in " ".join(text.split()), (n, text)
        info, n = ranges_of(server, lambda u=url, o=option: run("info", u, o))
        assert "episodes: 3" in info and n == 0, (n, info)
    server.changed = True  # another ETag: another file
    (changed, text), n = ranges_of(server, lambda: checksums(f"{server.url}/one.weir", scratch, f"--cache={cache}"))
    assert changed == local and n > 0 and "0 bytes stored" not in " ".join(text.split()), text
    server.changed = False
    with open(f"{cache}/weir-cache.data", "r+b") as f:  # damage
        for at in range(0, os.path.getsize(f.name), 4096):
            f.seek(at)
            f.write(b"?")
    damaged, text = checksums(f"{server.url}/one.weir", scratch, f"--cache={cache}")
    assert damaged == local and re.search(r"[1-9]\d*\s+damaged\s+blocks", text), text
    text = run("info", f"{server.root}/one.weir", f"--cache={cache}", code=1)
    assert "--cache is for URLs" in text, text
    small = cache_figures(f"{server.url}/one.weir", f"--cache={scratch}/small:1M")
    assert small["stored_bytes"] > 100000 and "errno" not in small and "full_bytes" not in small, small


def check_kills(server, local, scratch):
    """Two processes on one cache, which are killed while they fill it."""
    args = ["run", f"{server.url}/one.weir", f"--cache={scratch}/killed:64M"]
    for limit in (3, 8, 15):
        server.ranges, server.stalls_after = 0, limit
        server.stalled = threading.Event()
        processes = [subprocess.Popen([weir, *args], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
        while not server.stalled.wait(0.01) and any(process.poll() is None for process in processes):
            pass
        for process in processes:
            process.kill()
            process.wait()
        server.stalled, server.stalls_after = None, 0
    paths = [f"{scratch}/killed{i}" for i in range(2)]
    processes = [subprocess.Popen([weir, *args, "--num-epochs=2", "--seed=3", "--num-workers=2", f"--checksums={path}"], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for path in paths]
    for process, path in zip(processes, paths):
        assert process.wait() == 0
        with open(path, encoding="utf-8") as f:
            assert f.read() == local, "other batches after kill -9"
    (again, _), n = ranges_of(server, lambda: checksums(args[1], scratch, args[2]))
    assert again == local and n == 0, n


def check_full_disk(server, local, scratch):
    disk = f"{scratch}/disk"
    os.makedirs(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True, check=False).returncode:
        print("no file system can be mounted: a full disk is not tested")
        return
    try:
        for full in (False, False, True):
            if full:  # from the start
                os.unlink(f"{disk}/weir-cache.data")
                os.unlink(f"{disk}/weir-cache.table")
                subprocess.run(["dd", "if=/dev/zero", f"of={disk}/other", "bs=4k"], capture_output=True, check=False)
            remote, text = checksums(f"{server.url}/h5", scratch, f"--cache={disk}:64M")
            assert remote == local and "warning: --cache stores nothing more: No space left" in " ".join(text.split()), text
    finally:
        subprocess.run(["umount", disk], check=True)


def check_interrupt(server, *args):
    """Ctrl-C ends a run whose server is silent."""
    server.stalled = threading.Event()
    process = subprocess.Popen([weir, "run", f"{server.url}/one.weir", "--num-epochs=1", *args], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stalled.wait(60)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    output, _ = process.communicate(timeout=15)
    assert process.returncode != 0 and time.monotonic() - begin < 10, output
    assert "repair" not in output and not re.search("[1-9]\\d* bad frames", output), output
    server.stalled = None


CLOSE = """
import sys, weir
loader = weir.Loader(sys.argv[1], index=sys.argv[2], tensors="array")
try:
    for epoch in range(1000):
        for batch in loader:
            pass
except KeyboardInterrupt:
    loader.close()
    print("closed")
"""


def check_close(server, index):
    """weir.Loader is closed although its server is silent."""
    package = os.path.join(os.path.dirname(weir), "python")
    if not os.path.exists(os.path.join(package, "weir", "_weir.abi3.so")):
        print("the Python package is not built: closing a loader is not tested")
        return
    server.ranges, server.stalls_at, server.stalls_after = 0, 0, 50  # some after opening
    server.stalled = threading.Event()
    process = subprocess.Popen([sys.executable, "-c", CLOSE, f"{server.url}/one.weir", index], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, env={**environment, "PYTHONPATH": package})
    assert server.stalled.wait(60)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=15)
    assert output.endswith("closed\n"), output
    server.stalled, server.stalls_after = None, 0


def wait_for(url):
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=2):
                return True
        except OSError:
            time.sleep(0.1)
    return False


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def check_tls(port, local, scratch, authority):
    data = f"https://localhost:{port}/one.weir"
    remote, _ = checksums(data, scratch, env={"CURL_CA_BUNDLE": authority})
    assert remote == local, "other batches over TLS"
    environment.pop("CURL_CA_BUNDLE", None)
    environment.pop("SSL_CERT_FILE", None)
    text = run("run", data, "--num-epochs=1", code=1)
    assert "is not trusted" in text, text


@contextlib.contextmanager
def nginx(root, scratch, more="", tls=""):
    """Serves a folder, with an index of each folder. more: further settings of the server; tls: further servers. Gives
    the URL, or None without nginx."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        print("nginx is not installed: not compared with it")
        yield None
        return
    port, path = free_port(), os.path.join(scratch, "nginx.conf")
    folders = "".join(f"{kind}_temp_path {scratch}/temp; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"daemon off; master_process off; pid {scratch}/pid; error_log {scratch}/log;\nevents {{ }}\nhttp {{ access_log off; {folders}"
                f"server {{ listen 127.0.0.1:{port}; root {root}; autoindex on;\n {more} }}\n{tls} }}\n")
    with subprocess.Popen([program, "-e", f"{scratch}/log", "-c", path], stderr=subprocess.DEVNULL) as process:
        try:
            assert wait_for(f"http://127.0.0.1:{port}/"), open(f"{scratch}/log", encoding="utf-8").read()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def check_nginx(root, local, scratch):
    tls_port, authority = free_port(), certificate(scratch)
    tls = f"server {{ listen 127.0.0.1:{tls_port} ssl; ssl_certificate {authority}; ssl_certificate_key {authority}.key; root {root}; }}"
    more = f"location /json/ {{ alias {root}/tf/; autoindex_format json; }}"
    with nginx(root, scratch, more, tls if authority else "") as url:
        for name in ("one.weir", "tf", "tf/", "json", "sub-folder") if url else ():
            remote, _ = checksums(f"{url}/{urllib.request.pathname2url(name)}", scratch)
            assert remote == local, f"{name}: other batches from nginx"
        if url and authority:
            check_tls(tls_port, local, scratch, authority)


MOTO = """
import json, os, sys, boto3
endpoint, *folders = sys.argv[1:]
options = dict(endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
iam = boto3.client("iam", **options)
iam.create_user(UserName="u")
iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"}]}))
key = iam.create_access_key(UserName="u")["AccessKey"]
options.update(aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
s3 = boto3.client("s3", **options)
s3.create_bucket(Bucket="robots.lab")
for folder in folders:
    for path, _, names in os.walk(folder):
        for name in names:
            name = os.path.join(path, name)
            s3.upload_file(name, "robots.lab", "lab 1/" + os.path.relpath(name, folder))
print(key["AccessKeyId"], key["SecretAccessKey"])
"""


@contextlib.contextmanager
def s3(scratch, *folders):
    """Serves the contents of folders as s3://robots.lab/lab 1/. Gives the environment to read them with, or None."""
    has_moto = os.path.exists(MOTO_PYTHON) and subprocess.run(
        [MOTO_PYTHON, "-c", "import moto.server, boto3, flask"], capture_output=True, check=False).returncode == 0
    if not has_moto:
        print("moto is not installed: S3 is not tested")
        yield None
        return
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with open(f"{scratch}/moto", "w", encoding="utf-8") as log, subprocess.Popen(
            [MOTO_PYTHON, "-m", "moto.server", "-p", str(port)], stdout=log, stderr=log,
            env={**environment, "INITIAL_NO_AUTH_ACTION_COUNT": "3"}) as process:
        try:
            assert wait_for(endpoint + "/moto-api/data.json")
            made = subprocess.run([MOTO_PYTHON, "-c", MOTO, endpoint, *folders], capture_output=True, text=True, env=environment, check=False)
            assert made.returncode == 0, made.stderr
            name, secret = made.stdout.split()
            yield {"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": secret, "AWS_ENDPOINT_URL": endpoint}
        finally:
            process.terminate()


def check_s3(root, local, scratch):
    with s3(scratch, f"{root}/tf") as env:
        if not env:
            return
        secret = env["AWS_SECRET_ACCESS_KEY"]
        remote, text = checksums("s3://robots.lab/lab 1", scratch, env=env)
        assert remote == local and secret not in text, "other batches from S3"
        wrong = {**env, "AWS_SECRET_ACCESS_KEY": "wrong" + secret}
        text = run("run", "s3://robots.lab/lab 1", "--num-epochs=1", env=wrong, code=1)
        assert "SignatureDoesNotMatch" in text and secret not in text, text


@contextlib.contextmanager
def workspace():
    """Gives folders for data that servers have, and for files of the test. Skips the test without libcurl."""
    if "built without libcurl" in run("doctor"):
        print("built without libcurl")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        root, scratch = os.path.join(folder, "data"), os.path.join(folder, "scratch")
        os.makedirs(scratch)
        yield root, scratch


def main():
    with workspace() as (root, scratch):
        os.makedirs(f"{root}/sub-folder/a")
        run("synth", f"{root}/h5", "--episodes=3", "--steps=8", "--size=64x48")
        run("convert", f"{root}/h5", f"{root}/one.weir", "--to=packed")
        run("convert", f"{root}/h5", f"{root}/tf", "--to=tfrecord")
        shutil.copy(f"{root}/one.weir", f"{root}/sub-folder/a/copy of it.weir")
        local, _ = checksums(f"{root}/one.weir", scratch)
        assert local == checksums(f"{root}/tf", scratch)[0]
        server = check_faults(root, local, scratch)
        check_opening(server, scratch)
        check_links(root, server)
        check_redirects(server, root, local, scratch)
        check_certificates(root, local, scratch)
        check_anonymous(server, local, scratch)
        check_unnoticed(root, local, scratch)
        check_refusals(server)
        check_cache(server, local, scratch)
        check_kills(server, local, scratch)
        check_full_disk(server, local, scratch)
        check_interrupt(server)
        server.stalls_at = 4096  # frames, but not the header and the index, which --index has
        index = os.path.join(scratch, "kept")
        server.stalled = None
        run("info", f"{server.url}/one.weir", f"--index={index}")
        check_interrupt(server, f"--index={index}")
        server.stalls_at = os.path.getsize(f"{root}/one.weir") // 2  # frames that only the workers read
        check_interrupt(server, f"--index={index}", "--io-depth=1")
        check_close(server, index)
        check_nginx(root, local, scratch)
        check_s3(root, local, scratch)


if __name__ == "__main__":
    main()
