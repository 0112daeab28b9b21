"""Zarr and LeRobot datasets on servers: remote_formats.py WEIR. Compares runs over HTTP and S3 with local ones, batch by
batch, and counts requests. LeRobot needs ffmpeg, and a Python with pyarrow (tests/readers/setup.sh)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import zipfile

import remote
from http_server import Handler, Server
from remote import checksums, run, workspace

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.environ.get("WEIR_READERS_PYTHON", os.path.join(HERE, "..", "..", "build", "readers-venv", "bin", "python"))


PLAIN = """
import sys, plain
some = dict(cameras={"observation.images.top": (64, 48)}, lengths=(5, 4, 3), codec="libx264")
plain.write(sys.argv[1] + "/v2.1", "v2.1", **some)
plain.write(sys.argv[1] + "/v3.0", "v3.0", **some)
plain.write(sys.argv[1] + "/images", "v3.0", images=True, **some)
"""


class Counting(Handler):
    """Answers late, so that requests that could be made at once are counted as such."""

    def do_GET(self):
        server = self.server
        with server.lock:
            server.paths.append(self.path)
            server.now += 1
            server.most = max(server.most, server.now)
        time.sleep(0.02)
        with server.lock:
            server.now -= 1
        super().do_GET()


def make_zarr(root):
    run("synth", f"{root}/h5", "--episodes=3", "--steps=8", "--size=64x48")
    run("convert", f"{root}/h5", f"{root}/jpeg.zarr", "--to=zarr")
    run("convert", f"{root}/h5", f"{root}/several/raw.zarr", "--to=zarr", "--codec=raw")
    with zipfile.ZipFile(f"{root}/packed.zarr.zip", "w") as archive:
        for path in pathlib.Path(f"{root}/jpeg.zarr").rglob("*"):
            if path.is_file():
                archive.write(path, path.relative_to(f"{root}/jpeg.zarr"))
    shutil.copytree(f"{root}/several/raw.zarr", f"{root}/several/deeper/named-otherwise")
    return ["jpeg.zarr", "packed.zarr.zip", "several"]


def make_lerobot(root):
    has = os.path.exists(PYTHON) and not subprocess.run([PYTHON, "-c", "import pyarrow"], capture_output=True, check=False).returncode
    if not has or not shutil.which("ffmpeg"):
        print("pyarrow or ffmpeg is not installed: LeRobot is not tested; tests/readers/setup.sh installs pyarrow")
        return []
    subprocess.run([PYTHON, "-c", PLAIN, f"{root}/lerobot"], check=True, env={**os.environ, "PYTHONPATH": f"{HERE}/../lerobot"})
    return [f"lerobot/{name}" for name in ("v2.1", "v3.0", "images")]


def opened(text):
    return int(text.split(" to open")[0].rsplit(" ", 1)[1])


def check_equal(local, base, scratch, env=None):
    """local: name -> checksums. Returns the numbers of requests to open."""
    requests = {}
    for name, expected in local.items():
        found, text = checksums(f"{base}/{name}", scratch, env=env)
        assert found == expected, f"{name}: other batches from {base}"
        requests[name] = opened(text)
    return requests


def check_commands(root, name, base, scratch):
    here, there = f"{scratch}/here.weir", f"{scratch}/there.weir"
    run("convert", f"{root}/{name}", here, "--to=packed", "--codec=raw")
    run("convert", f"{base}/{name}", there, "--to=packed", "--codec=raw")
    with open(here, "rb") as a, open(there, "rb") as b:
        assert a.read() == b.read(), f"{name}: another copy"
    os.remove(here)
    os.remove(there)
    for command in ("info", "verify"):
        texts = [run(command, f"{place}/{name}", code=None).replace(place, "") for place in (root, base)]
        local, found = ([line for line in text.splitlines() if not re.match("files:|time:|  frame takes", line)] for text in texts)
        assert local == found, texts


def check_bench(base, name):
    text = run("bench", f"{base}/{name}", "--formats=as-is", "--max-minutes=0.02", "--min-seconds=0.1", "--repeats=2")
    assert "on a server" in text and "as-is" in text and "failed" not in text, text


def count(root, names):
    """Opening makes many requests at once, and stays on its dataset."""
    server = Server(root)
    server.RequestHandlerClass = Counting
    for name, least in names:
        server.now = server.most = 0
        server.paths = []
        run("run", f"{server.url}/{name}", "--num-epochs=1", "--max-batches=1", "--io-depth=1", "--num-workers=1")
        assert server.most >= least, f"{name}: at most {server.most} requests at once"
        assert all(path.startswith(f"/{name}/") for path in server.paths), server.paths
    server.shutdown()


def check_hostile(root, server):
    """Paths in meta/info.json must not leave the dataset."""
    info = f"{root}/lerobot/v2.1/meta/info.json"
    with open(info, encoding="utf-8") as f:
        good = json.load(f)
    for path in ("../../{episode_index}", "//127.0.0.1:1/{episode_index}", "http://127.0.0.1:1/{episode_index}", "a/\n\\{episode_index}"):
        with open(info, "w", encoding="utf-8") as f:
            json.dump({**good, "data_path": path}, f)
        text = run("run", f"{server.url}/lerobot/v2.1", "--num-epochs=1", code=1)
        assert "correct it" in text or "correct the path" in text, (path, text)
    with open(info, "w", encoding="utf-8") as f:
        json.dump(good, f)


def check_refusals(root, server):
    shutil.copytree(f"{root}/jpeg.zarr", f"{root}/bad.zarr")
    os.remove(f"{root}/bad.zarr/.zgroup")
    text = run("run", f"{server.url}/bad.zarr", "--num-epochs=1", code=1)
    assert ".zgroup: the server has no such file" in text, text
    text = run("run", f"{server.url}/data.mdb", "--num-epochs=1", code=1)
    assert "lmdb files cannot be read from a server" in text, text
    shutil.rmtree(f"{root}/bad.zarr")


def main():
    with workspace() as (root, scratch):
        os.makedirs(f"{root}/several/deeper")
        zarr = make_zarr(root)
        lerobot = make_lerobot(root)
        local = {name: checksums(f"{root}/{name}", scratch)[0] for name in [*zarr, *lerobot]}
        server = Server(root)
        server.faults = True
        check_equal({name: local[name] for name in [zarr[0], *lerobot[:1]][-1:]}, server.url, scratch)
        server.faults = False
        check_commands(root, [zarr[0], *lerobot[:2]][-1], server.url, scratch)
        check_bench(server.url, zarr[0])
        count(root, [(zarr[0], 8)] + [(name, 4) for name in lerobot[:1]])
        check_refusals(root, server)
        if lerobot:
            check_hostile(root, server)
        with remote.nginx(root, scratch) as url:
            if url:
                check_equal(local, url, scratch)
        with remote.s3(scratch, root) as env:
            if env:
                some = {name: local[name] for name in [zarr[0], *lerobot[:2]]}
                requests = check_equal(some, "s3://robots.lab/lab 1", scratch, env)
                assert requests[zarr[0]] <= 30, requests  # the list has the facts of all chunks


if __name__ == "__main__":
    main()
