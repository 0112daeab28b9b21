"""The situations of situations.py: datasets, and runs on them with a known bottleneck."""
import subprocess
from pathlib import Path


def uneven(path):
    """Two cameras, one with ten times the pixels of the other."""
    subprocess.run(["/usr/bin/python3", str(Path(__file__).parent / "uneven.py"), str(path)], check=True)


# Datasets, written by `weir synth` with these options, by `weir convert`, or by bench/virtual_episodes (None).
DATA = {
    "jpegs": "--episodes 12 --steps 40 --cameras cam_high,cam_wrist --size 320x240",
    "raw": "--format act --episodes 6 --steps 40 --cameras cam_high,cam_wrist --size 320x240",
    "small": "--format act --episodes 12 --steps 40 --cameras cam_high,cam_wrist --size 64x48",
    "chunks": "--format robomimic-gzip --episodes 6 --steps 40 --size 128x128",
    "small-jpegs": "--episodes 10 --steps 40 --cameras cam_high,cam_wrist --size 64x48",
    "large": "--episodes 6 --steps 30 --cameras cam_high,cam_wrist --size 640x480",
    "large-raw": "--format act --episodes 6 --steps 40 --cameras cam_high,cam_wrist --size 640x480",
    "four": "--format act --episodes 10 --steps 30 --cameras a_high,b_low,c_wrist,d_front --size 64x48",
    "eight-jpegs": "--episodes 8 --steps 20 --cameras a,b,c,d,e,f,g,h --size 160x120",
    "many": "--episodes 40 --steps 30 --cameras cam_high --size 128x96",
    "robotwin": "--format robotwin --episodes 8 --steps 40 --size 160x120",
    "astrobench": "--format astrobench --episodes 8 --steps 30 --size 160x120",
    "virtual": None,
    "uneven": uneven,
    "png": "convert jpegs --to hdf5 --codec png",
    "jpegs.lmdb": "convert jpegs --to lmdb",
    "raw.zarr": "convert raw --to zarr",
    "small.zarr": "convert small --to zarr --codec raw",
    "rlds": "convert jpegs --to tfrecord",
    "raw.weir": "convert raw --to packed",
    "gzip": "convert raw --to hdf5-gzip --codec raw",
}


class Situation:
    """A run and its expected first cause.

    cores   CPU affinity
    loops   concurrent busy loops
    quota   cores of a control group
    disk    read limit of a control group
    fake    WEIR_FAKE_CUDA of the fake GPU
    steal   fraction of cores stolen by a hypervisor; inserted into the log, because a test cannot cause it
    needs   min cores of the machine
    late    expected fields of the task that completed most late batches
    also    causes that must be named too"""

    def __init__(self, name, expected, data, options, env=None, cores=None, loops=0, quota=0, disk=None, fake=None,
                 needs=1, late=None, also=(), steal=0):
        self.name, self.data, self.options = name, data, options
        self.expected = expected if isinstance(expected, set) else {expected}
        self.env, self.late, self.also, self.steal = env or {}, late or {}, set(also), steal
        self.cores, self.loops, self.quota, self.disk, self.fake, self.needs = cores, loops, quota, disk, fake, needs


S = Situation
PREAD = "--io pread --num-workers 2"
MEASURED = f"{PREAD} --seconds 1"
ALL = {"WEIR_SLOW_THREAD": ""}  # also slows down the consumer's reads
STORAGE = {"storage", "storage-latency", "storage-bandwidth"}
SITUATIONS = [
    # not data-bound
    S("step-sleeps", "consumer", "jpegs", f"{PREAD} --step-ms 40 --max-batches 22"),
    S("step-computes", "consumer", "small", "--io pread --num-workers 1 --step-ms 20 --step-spin", needs=2),
    S("step-on-gpu", "consumer", "small", "--num-workers 1 --device cuda --step-ms 25 --max-batches 25", fake=""),
    # the cores
    S("decode", "decode", "jpegs", MEASURED),
    S("decode-sleeps", "decode", "small-jpegs", MEASURED, {"WEIR_SLOW_JPEG_SLEEP_US": 2500}),
    S("decode-partly", "decode", "jpegs", f"{MEASURED} --step-ms 1"),
    S("inflate", "inflate", "chunks", f"{MEASURED} --batch-size 2", {"WEIR_SLOW_INFLATE_US": 100}),
    S("floats", "convert", "raw", f"{MEASURED} --dtype f32 --image-layout nchw --mean imagenet --std imagenet"),
    S("one-core", "decode", "jpegs", "--io pread --num-workers 1 --seconds 1", cores=1),
    # storage
    S("latency", "storage-latency", "small", MEASURED, {"WEIR_SLOW_US": 2000}),
    # with few free cores, decoding may be the larger gain
    S("latency-steal", {"storage-latency", "decode"}, "large", f"{PREAD} --seconds 2", {"WEIR_SLOW_US": 1000}, steal=0.06,
      also=["host", "storage-latency"]),
    S("latency-crowded", "storage-latency", "small", MEASURED, {"WEIR_SLOW_US": 2000}, loops=1),
    S("decode-steal", "host", "jpegs", MEASURED, steal=0.4),
    S("latency-partly", STORAGE, "small", f"{MEASURED} --step-ms 5", {"WEIR_SLOW_US": 2000}),
    S("bandwidth", "storage-bandwidth", "raw", MEASURED, {"WEIR_SLOW_BYTES_PER_S": 120000000}),
    S("tail", "storage-tail", "small", MEASURED, {"WEIR_SLOW_US": 60000, "WEIR_SLOW_EVERY": 53}),
    S("slow-camera", "slow-camera", "small", MEASURED, {"WEIR_SLOW_US": 4000, "MAP": "cam_wrist"},
      late={"camera": "cam_wrist"}),
    S("slow-file", "slow-file", "small", f"{MEASURED} --train-split 1",
      {"WEIR_SLOW_US": 12000, "WEIR_SLOW_FILE": "/episode_7.hdf5"}, late={"file": "episode_7.hdf5"}),
    S("slow-worker", "slow-worker", "jpegs", MEASURED, {"WEIR_SLOW_US": 25000, "WEIR_SLOW_THREAD": "weir-w1"},
      late={"worker": "weir-w1"}),
    S("cold-epoch", "cold", "raw", f"{PREAD} --cold", {"WEIR_SLOW_US": 3000}),
    S("cold-first-epoch", "cold", "raw", f"{PREAD} --cold --num-epochs 4",
      {"WEIR_SLOW_US": 3000, "WEIR_SLOW_FIRST": 480}),
    S("library", "library", "virtual", "--num-workers 8 --batch-size 4 --seconds 1"),
    # workers and batches
    S("one-worker", "too-few-workers", "jpegs", "--io pread --num-workers 1 --seconds 1", needs=2),
    S("no-workers", "too-few-workers", "jpegs", "--io pread --num-workers 0 --seconds 1", needs=2),
    S("many-workers", "too-many-workers", "jpegs", "--io pread --num-workers 8 --seconds 1", cores=1),
    S("bursts", "bursts", "large", f"{PREAD} --seconds 2 --prefetch 1 --step-ms 0.1",
      {"WEIR_SLOW_STEP_US": 300000, "WEIR_SLOW_STEP_EVERY": 12}),
    # the machine
    S("neighbours", "neighbours", "jpegs", MEASURED, loops=4),
    S("quota", "quota", "jpegs", MEASURED, quota=0.15),
    # the fake GPU
    S("bus", "bus", "raw", "--num-workers 2 --device cuda --seconds 1", fake="copy_ns_per_mb=8000000"),
    S("gpu-decoder", "gpu-decoder", "jpegs", "--num-workers 2 --device cuda --decoder nvjpeg --batch-size 2 --prefetch 8 --seconds 1",
      {"WEIR_FAKE_JPEG": "frame_ns=4000000"}, fake=""),
    # no clear cause
    S("too-short", "cannot-tell", "jpegs", f"{PREAD} --max-batches 10"),
    S("no-timing", "cannot-tell", "jpegs", f"{PREAD} --no-timing"),
    # other common settings
    S("latency-inline", {"storage-latency", "too-few-workers"}, "small", "--num-workers 0 --seconds 1 --batch-size 2 --io pread",
      {"WEIR_SLOW_US": 2000, **ALL}, also=["storage-latency"]),
    S("batch1", "decode", "large", "--seconds 1 --batch-size 1 --prefetch 1 --io pread"),
    S("disk-iops", STORAGE, "raw", "--seconds 2 --io pread --direct", disk=("iops", 300)),
    S("disk-mmap-cold", {"cold"}, "raw", "--io mmap --cold", disk=("bps", 60000000)),
    S("worker-burns", "slow-worker", "small-jpegs", "--io pread --num-workers 2 --seconds 1", {"WEIR_SLOW_JPEG_US": 10000, "WEIR_SLOW_JPEG_THREAD": "weir-w1"}),
    S("file-camera", {"slow-file", "slow-camera"}, "small", f"{MEASURED} --train-split 1",
      {"WEIR_SLOW_US": 15000, "WEIR_SLOW_FILE": "/episode_5.hdf5", "MAP": "cam_wrist"}),
    S("latency-auto", "storage-latency", "jpegs", "--seconds 1", {"WEIR_SLOW_US": 5000, **ALL}),
]
# Only with --more: slow to write, or similar to those above.
MORE = [
    S("step-cached", "consumer", "small", "--decode-cache 64M --num-workers 1 --step-ms 15 --max-batches 25 --num-epochs 2"),
    S("inline-one-core", "decode", "jpegs", "--io pread --num-workers 0 --seconds 1", cores=1),
    S("neighbours-latency", "neighbours", "jpegs", MEASURED, {"WEIR_SLOW_US": 500}, loops=4),
    S("decode-slow", "decode", "small-jpegs", MEASURED, {"WEIR_SLOW_JPEG_US": 700}),
    S("step-synced", "consumer", "small", "--num-workers 1 --device cuda --step-ms 25 --max-batches 25 --sync-steps",
      fake=""),
    # not data-bound
    S("step-inline", "consumer", "small", "--num-workers 0 --step-ms 20 --max-batches 30"),
    S("step-quota", "consumer", "small", "--num-workers 2 --step-ms 40 --max-batches 30", quota=0.3),
    S("step-latency", "consumer", "small", f"{PREAD} --step-ms 30 --max-batches 30", {"WEIR_SLOW_US": 500}),
    S("step-cuda-val", "consumer", "small", "--device cuda --step-ms 20 --train-split 0.5 --max-batches 60", fake=""),
    # cores
    S("png", "decode", "png", "--seconds 1"),
    S("lmdb", "decode", "jpegs.lmdb", "--seconds 1"),
    S("rlds", "decode", "rlds", "--seconds 1"),
    S("zarr", {"inflate", "page-cache"}, "raw.zarr", "--seconds 1"),
    S("gzip", "inflate", "gzip", "--seconds 1"),
    S("gzip-chunks", {"inflate", "too-many-workers"}, "chunks", "--seconds 1 --num-workers 3"),
    S("raw-warm", {"page-cache", "decode", "other-cpu"}, "large-raw", "--seconds 1"),
    S("raw-mmap", {"page-cache", "decode", "other-cpu"}, "large-raw", "--seconds 1 --io mmap"),
    S("small-warm", {"page-cache", "other-cpu", "decode"}, "small", "--seconds 1 --batch-size 128"),
    S("cache-warm", {"other-cpu"}, "jpegs", "--seconds 1 --decode-cache 1G"),
    S("half-cache", "decode", "jpegs", "--decode-cache 110M --num-epochs 6 --io pread"),
    S("resize", {"decode", "convert"}, "large", "--seconds 2 --image-size 224x224"),
    S("f32", {"convert", "decode"}, "large", "--seconds 2 --dtype f32"),
    S("many-cameras", "decode", "eight-jpegs", "--seconds 1 --io uring"),
    S("one-core-4-workers-step", {"too-many-workers"}, "large", "--seconds 1 --num-workers 6 --step-ms 1", cores=1),
    S("decode-part", "decode", "large", "--seconds 2 --step-ms 3 --io pread"),
    S("history", "decode", "large", "--seconds 1 --obs-history 3"),
    S("cuda-decode", "decode", "large", "--seconds 1 --device cuda --decoder turbo", fake=""),
    S("episode", "decode", "many", "--sampling episode --num-epochs 400 --io pread"),
    S("robotwin", "decode", "robotwin", "--seconds 1"),
    S("astrobench", "decode", "astrobench", "--seconds 1 --batch-size 4"),
    S("burn-one-core", "decode", "small-jpegs", "--num-workers 1 --seconds 1", {"WEIR_SLOW_JPEG_US": 2000}, cores=1),
    # storage
    S("latency-4-on-1", "storage-latency", "small", "--num-workers 4 --seconds 1 --io pread", {"WEIR_SLOW_US": 3000},
      cores=1),
    S("latency-16", "storage-latency", "small", "--num-workers 16 --seconds 1 --io pread", {"WEIR_SLOW_US": 8000}),
    S("latency-all", "storage-latency", "jpegs", "--num-workers 2 --seconds 1 --io pread", {"WEIR_SLOW_US": 5000, **ALL}),
    S("latency-rlds", "storage-latency", "rlds", "--seconds 1", {"WEIR_SLOW_US": 5000, **ALL}),
    S("latency-lmdb", STORAGE, "jpegs.lmdb", "--seconds 1", {"WEIR_SLOW_US": 5000, **ALL}),
    S("latency-weir", "storage-latency", "raw.weir", "--seconds 1 --num-workers 3", {"WEIR_SLOW_US": 5000, **ALL}),
    S("latency-zarr", "storage-latency", "small.zarr", "--seconds 1", {"WEIR_SLOW_US": 5000, **ALL}),
    S("latency-gzip", STORAGE, "chunks", "--seconds 2 --batch-size 2", {"WEIR_SLOW_US": 300, **ALL}),
    S("latency-partly-2", STORAGE, "small", f"{PREAD} --seconds 2 --step-ms 14", {"WEIR_SLOW_US": 2000}),
    S("latency-decode", {"storage-latency", "decode"}, "large", "--seconds 1 --io pread", {"WEIR_SLOW_US": 800}),
    S("latency-cuda", "storage-latency", "small", "--seconds 1 --device cuda --io pread", {"WEIR_SLOW_US": 2000}, fake=""),
    S("latency-floats", STORAGE, "raw", "--seconds 1 --io pread --dtype f32", {"WEIR_SLOW_US": 6000}),
    S("latency-batch1", "storage-latency", "four", "--seconds 1 --io pread --batch-size 1 --prefetch 1", {"WEIR_SLOW_US": 1500}),
    S("latency-256", "storage-latency", "many", "--seconds 2 --io pread --batch-size 64", {"WEIR_SLOW_US": 1500}),
    S("bandwidth-big", "storage-bandwidth", "large-raw", "--seconds 2 --io pread", {"WEIR_SLOW_BYTES_PER_S": 200000000}),
    S("bandwidth-8", "storage-bandwidth", "large-raw", "--seconds 2 --io pread --num-workers 8", {"WEIR_SLOW_BYTES_PER_S": 100000000}),
    S("bandwidth-each", STORAGE, "raw", "--seconds 1 --io pread", {"WEIR_SLOW_EACH_BYTES_PER_S": 40000000}),
    S("bandwidth-inline", {"storage-bandwidth", "too-few-workers"}, "raw", "--seconds 1 --io pread --num-workers 0",
      {"WEIR_SLOW_BYTES_PER_S": 40000000, **ALL}, also=["storage-bandwidth"]),
    S("disk-uring", "storage-bandwidth", "raw", "--seconds 2 --io uring --direct", disk=("bps", 30000000)),
    S("disk-pread", "storage-bandwidth", "raw", "--seconds 2 --io pread --direct", disk=("bps", 30000000)),
    S("disk-uring-cold", {"cold"}, "raw", "--io uring --cold", disk=("bps", 60000000)),
    S("disk-auto-cold", {"cold"}, "large-raw", "--cold --num-epochs 3", disk=("bps", 100000000)),
    S("disk-iops-uring", STORAGE, "raw", "--seconds 2 --io uring --direct", disk=("iops", 300)),
    S("tail-2", "storage-tail", "small", MEASURED, {"WEIR_SLOW_US": 20000, "WEIR_SLOW_EVERY": 40, "WEIR_SLOW_THEN_US": 150000, "WEIR_SLOW_THEN_EVERY": 400}),
    S("tail-decode", "storage-tail", "jpegs", "--seconds 2 --io pread", {"WEIR_SLOW_US": 100000, "WEIR_SLOW_EVERY": 60}),
    S("tail-cuda", "storage-tail", "small", "--seconds 1 --io pread --device cuda", {"WEIR_SLOW_US": 60000, "WEIR_SLOW_EVERY": 53}, fake=""),
    S("file-many", "slow-file", "many", f"{MEASURED} --train-split 1 --num-workers 4",
      {"WEIR_SLOW_US": 30000, "WEIR_SLOW_FILE": "/episode_17.hdf5"}),
    S("camera-4", "slow-camera", "four", f"{MEASURED} --num-workers 4", {"WEIR_SLOW_US": 3000, "MAP": "c_wrist"}),
    S("camera-4-decode", "slow-camera", "jpegs", f"{MEASURED}", {"WEIR_SLOW_US": 4000, "MAP": "cam_high"}),
    S("worker-decodes", "slow-worker", "jpegs", MEASURED, {"WEIR_SLOW_JPEG_SLEEP_US": 20000, "WEIR_SLOW_JPEG_THREAD": "weir-w0"}),
    S("worker-4", "slow-worker", "small", "--io pread --num-workers 4 --seconds 1", {"WEIR_SLOW_US": 20000, "WEIR_SLOW_THREAD": "weir-w2"}),
    S("noise", {"cannot-tell"} | STORAGE, "small", f"{PREAD} --num-epochs 8", {"WEIR_SLOW_US": 3000, "WEIR_SLOW_AFTER": 4000}),
    S("uneven", {"decode", "slow-camera"}, "uneven", "--seconds 1 --io pread"),
    # cold
    S("cold-2", "cold", "large-raw", f"{PREAD} --cold --num-epochs 2", {"WEIR_SLOW_US": 5000, "WEIR_SLOW_FIRST": 480}),
    # workers and batches
    S("bursts-2", "bursts", "jpegs", f"{MEASURED} --prefetch 1 --step-ms 0.1",
      {"WEIR_SLOW_STEP_US": 100000, "WEIR_SLOW_STEP_EVERY": 30}),
    S("bursts-3", "bursts", "jpegs", "--seconds 2 --io pread --prefetch 2 --step-ms 0.1", {"WEIR_SLOW_STEP_US": 200000, "WEIR_SLOW_STEP_EVERY": 20}),
    S("no-workers-step", "too-few-workers", "large", "--seconds 1 --num-workers 0 --step-ms 10"),
    S("one-worker-inflate", "too-few-workers", "chunks", "--seconds 1 --num-workers 1"),
    S("many-16", "too-many-workers", "large", "--seconds 1 --num-workers 16 --io pread"),
    S("many-spin", {"too-many-workers", "decode"}, "large", "--seconds 1 --num-workers 2 --io pread --step-ms 5 --step-spin"),
    # machine
    S("quota-1", {"quota", "decode"}, "jpegs", "--seconds 1", quota=1.0),  # not reached if others use the cores
    S("quota-many", "quota", "large", "--seconds 2 --num-workers 8", quota=0.5),
    S("quota-latency", {"quota"}, "small-jpegs", "--seconds 1 --io pread", {"WEIR_SLOW_US": 1000, "WEIR_SLOW_JPEG_US": 1000}, quota=0.2),
    S("neighbour-1", "neighbours", "large", "--seconds 1 --num-workers 1", loops=2, cores=1),
    S("neighbour-inline", "neighbours", "large", "--seconds 2 --num-workers 0", loops=4),
    S("neighbour-inflate", "neighbours", "chunks", "--seconds 1", loops=2, also=["inflate"]),
    # a GPU
    S("bus-jpeg", "bus", "jpegs", "--device cuda --decoder turbo --seconds 1", fake="copy_ns_per_mb=8000000"),
    S("gpu-decoder-hybrid", {"gpu-decoder", "decode"}, "jpegs", "--device cuda --decoder hybrid --seconds 3", {"WEIR_FAKE_JPEG": "frame_ns=1000000"}, fake=""),
    S("library-step", "library", "virtual", "--num-workers 4 --step-ms 1 --seconds 1"),
    # no clear cause
    S("short-time", "cannot-tell", "small", "--max-batches 30"),
]
