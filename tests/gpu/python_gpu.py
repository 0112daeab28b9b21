#!/usr/bin/env python3
"""Tests the Python package on an NVIDIA GPU.

Compares values with the CPU's, and stages on the GPU's clock with torch's events. Also tests streams and held batches,
and compares the batch rate with the C program's.

    PYTHONPATH=build/release/python WEIR_CUDA_MODULE=build/release/libweir_cuda.so \\
        python3 tests/gpu/python_gpu.py --weir build/release/weir [DATA] [--part values --part rates] [--seconds 5]

Needs torch with CUDA, and numpy. Without DATA it creates some with the program (640x480, 4 cameras, quality 95). Every
part runs in a separate process with a time limit; the last lines are a summary. Exit status 1: a part failed; 77: no
GPU."""
import argparse
import faulthandler
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

PARTS = ("values", "streams", "keeps", "stages", "motion", "costs", "rates")
LIMIT_S = {"motion": 120, "values": 180, "streams": 120, "keeps": 120, "stages": 90, "costs": 90, "rates": 1200}
TARGET = 0.97


def fail(text):
    print(f"FAILED: {text}", flush=True)
    raise SystemExit(1)


def check(fine, text):
    if not fine:
        fail(text)


class Here:
    """Context of a part: torch, weir and the options."""

    def __init__(self, options):
        import torch
        import weir
        self.torch, self.weir, self.options, self.data = torch, weir, options, options.data

    def loader(self, **options):
        return self.weir.Loader(self.data, **{"device": "cuda:0", "decoder": "turbo", "batch_size": 8, **options})

    def names(self):
        """The available decoders."""
        found = []
        for decoder in ("turbo", "nvjpeg", "hybrid"):
            try:
                self.loader(decoder=decoder).close()
                found.append(decoder)
            except self.weir.Error as error:
                print(f"skipping {decoder}: {error}")
        return found

    def on_cpu(self, **options):
        """All batches of an epoch, on the host."""
        with self.loader(device="cpu", decoder="turbo", **options) as loader, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(loader)


def psnr(torch, a, b):
    error = (a.double() - b.double()).pow(2).mean().item()
    return 99.0 if error == 0 else float(10 * torch.log10(torch.tensor(255.0 ** 2 / error)))


def values(here):
    torch = here.torch
    few = {"max_batches": 6}
    for keys, layout in (("weir", "nchw"), ("weir", "nhwc"), ("lerobot", "nchw"), ("act", "nchw")):
        expected = here.on_cpu(keys=keys, image_layout=layout, **few)
        with here.loader(keys=keys, image_layout=layout, **few) as loader:
            n = 0
            for batch, other in zip(loader, expected):
                batch, other = ([item._asdict() if isinstance(item, tuple) else item for item in (batch, other)])
                for name, value in batch.items():
                    check(value.device.type == "cuda" and value.dtype == other[name].dtype, f"{name} is {value.dtype}")
                    check(torch.equal(value.cpu(), other[name]), f"{keys}, {layout}: {name} of batch {n} differs")
                n += 1
            check(n == len(expected), f"{n} batches, not {len(expected)}")
        print(f"turbo, keys {keys}, {layout}: {n} batches are the CPU's, bit for bit")
    expected = here.on_cpu(dtype="float32", **few)
    for name, dtype in (("float32", torch.float32), ("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        with here.loader(dtype=name, **few) as loader:
            for batch, other in zip(loader, expected):
                check(batch["image"].dtype == dtype, f"{name} came as {batch['image'].dtype}")
                check(torch.equal(batch["image"].cpu(), other["image"].to(dtype)), f"{name} differs from the CPU's rounding")
        print(f"{name}: as the CPU's float32, rounded")
    expected = here.on_cpu(**few)
    for decoder in [name for name in here.names() if name != "turbo"]:
        least = 99.0
        with here.loader(decoder=decoder, deterministic=decoder == "hybrid", **few) as loader:
            for batch, other in zip(loader, expected):
                least = min(least, psnr(torch, batch["image"].cpu(), other["image"]))
        check(least >= 55, f"{decoder}: images are {least:.1f} dB from the CPU's")
        print(f"{decoder}: images within {least:.1f} dB of the CPU's (99 = identical)")


def streams(here):
    """Consumers that never wait: they read each batch late on its stream, and drop it at once."""
    torch = here.torch
    expected = [batch["image"] for batch in here.on_cpu()]
    late = int(here.torch.cuda.get_device_properties(0).clock_rate * 2) if hasattr(
        torch.cuda.get_device_properties(0), "clock_rate") else 3_000_000

    def compare(copies, what):
        torch.cuda.synchronize()
        check(len(copies) == len(expected), f"{what}: {len(copies)} batches, not {len(expected)}")
        for n, (copy, other) in enumerate(zip(copies, expected)):
            check(torch.equal(copy.cpu(), other), f"{what}: batch {n} was changed before the stream had read it")
        print(f"{what}: {len(copies)} batches, read 2 ms late, are unchanged")

    for what, stream in (("a stream of torch's own", torch.cuda.Stream()), ("the default stream",
                                                                           torch.cuda.default_stream())):
        copies = []
        with torch.cuda.stream(stream), here.loader() as loader:
            for batch in loader:
                torch.cuda._sleep(late)
                copies.append(batch["image"].clone())
                del batch
        compare(copies, what)

    side = torch.cuda.Stream()
    copies = []
    with torch.cuda.stream(torch.cuda.Stream()), here.loader() as loader:
        for batch in loader:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(late)
                copies.append(batch["image"].clone())
            torch.cuda.current_stream().wait_stream(side)
            del batch
    compare(copies, "a side stream that the first one waits for")

    several = [torch.cuda.Stream() for _ in range(3)]
    copies = []
    with here.loader(tensors="array") as loader:
        for n, batch in enumerate(loader):
            tensors = []
            for stream in several:
                with torch.cuda.stream(stream):
                    tensors.append(torch.from_dlpack(batch["image"]))
            with torch.cuda.stream(several[n % 3]):
                torch.cuda._sleep(late)
                copies.append(tensors[n % 3].clone())
            tensors.clear()
            del batch
    compare(copies, "arrays handed over on three streams")

    with here.loader(tensors="array") as loader:
        array = next(iter(loader))["image"]
        check(array.__dlpack_device__() == (2, 0), "the array's device")
        for stream in (None, 1, 2, -1, torch.cuda.Stream().cuda_stream):
            for version in (None, (1, 0)):
                array.__dlpack__(stream=stream, max_version=version)
        for wrong in (0, -2):
            try:
                array.__dlpack__(stream=wrong)
                fail(f"stream={wrong} was accepted")
            except ValueError:
                pass
        check(torch.equal(torch.from_dlpack(array).cpu(), expected[0]), "from_dlpack")
        copy = torch.utils.dlpack.from_dlpack(array.__dlpack__(copy=True, stream=1))
        check(copy.data_ptr() != torch.from_dlpack(array).data_ptr(), "copy=True did not copy")
        check(torch.equal(copy.cpu(), expected[0]), "copy=True differs")
        host = torch.utils.dlpack.from_dlpack(array.__dlpack__(dl_device=(1, 0)))
        check(host.device.type == "cpu" and torch.equal(host, expected[0]), "dl_device=(1, 0) differs")
        check(torch.equal(torch.as_tensor(array, device="cuda").cpu(), expected[0]), "__cuda_array_interface__")
    print("stream None, 1, 2, -1 and a number; 0 is refused; copies; __cuda_array_interface__")


def keep_all(here, expected):
    """Holds all batches of an epoch after closing their loader. Returns the bytes of free GPU memory before and after
    dropping them."""
    torch = here.torch
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.cuda.stream(torch.cuda.Stream()), here.loader() as loader:
            kept = list(loader)
            again = [batch["image"].clone() for batch in loader]
    kept_warnings = [w for w in caught if "that the program keeps" in str(w.message)]
    check(len(kept_warnings) == 1, f"{len(kept_warnings)} warnings about kept batches, not 1")
    torch.cuda.synchronize()
    for n, (batch, other) in enumerate(zip(kept, expected)):
        check(torch.equal(batch["image"].cpu(), other), f"kept batch {n} was changed")
    there = torch.cuda.mem_get_info()[0]
    del kept, again, batch, loader
    torch.cuda.empty_cache()
    return there, torch.cuda.mem_get_info()[0]


def keeps(here):
    torch = here.torch
    expected = [batch["image"] for batch in here.on_cpu()]
    torch.cuda.synchronize()
    # The first call also loads torch's kernels, whose memory is never freed. A leak would take more every time.
    _, free_first = keep_all(here, expected)
    there, free_then = keep_all(here, expected)
    print(f"{len(expected)} held batches outlive the loader: {(free_first - there) / 1e6:.0f} MB; "
          f"{(free_first - free_then) / 1e6:.0f} MB after dropping them")
    check(free_first - there > 64e6, "held batches took no memory: nothing was tested")
    check(free_first - free_then < 16e6, "the memory of held batches was not freed")

    with torch.cuda.stream(torch.cuda.Stream()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        last, used, times, n = [], [], [], 0
        with here.loader() as loader:
            end = time.monotonic() + here.options.seconds
            before = time.monotonic()
            while time.monotonic() < end:
                for batch in loader:
                    last = [*last[-3:], batch]
                    torch.cuda._sleep(100_000)
                    n += 1
                    used.append(torch.cuda.mem_get_info()[0])
                    now = time.monotonic()
                    times.append(now - before)
                    before = now
    growth = used[len(used) // 2] - used[-1]
    print(f"4 batches always held: {n} batches, median {1e3 * statistics.median(times):.2f} ms each; memory grew by "
          f"{growth / 1e6:.0f} MB in the second half")
    check(growth < 64e6, "memory grows")


os.environ["COLUMNS"] = "1000"  # tables have all columns


def gpu_row(table, name):
    for line in table.splitlines():
        words = line[len(name):].split()
        if line.startswith(name + " ") and words[0] == "gpu-work":
            return int(words[1]), float(words[2].rstrip("s"))
    return 0, 0.0


def stages(here):
    torch, weir = here.torch, here.weir
    a = torch.randn(2048, 2048, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        pairs = []
        for n in range(200):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            with weir.stage("20_train_forward_pass", cuda=True):
                begin.record()
                for _ in range(1 + n % 4):
                    a = (a @ a).clamp(-1, 1)
                end.record()
            pairs.append((begin, end))
        torch.cuda.synchronize()
        total = sum(begin.elapsed_time(end) for begin, end in pairs) / 1e3
        calls, seconds = gpu_row(weir.table(whole=True), "20_train_forward_pass")
    print(f"200 stages: {seconds:.4f} s by weir.stage(cuda=True), {total:.4f} s by torch's events inside, {calls} calls")
    check(calls == 200, f"{calls} of 200 calls were timed")
    check(total * 0.98 <= seconds <= total * 1.05 + 200 * 20e-6, "the two differ by more than 5 %")
    with here.loader() as loader, torch.cuda.stream(torch.cuda.Stream()):
        for batch in loader:
            with weir.stage("test step", cuda=True):
                torch.cuda._sleep(1_000_000)
        torch.cuda.synchronize()
        table = loader.table()
    print("\n".join(line for line in table.splitlines() if "gpu-" in line or line.startswith("GPU")))
    check(gpu_row(table, "07_h2d_copy")[0] > 0, "the loader's own rows are missing")


def motion(here):
    """Compares states on the GPU with the CPU's. Each call uses another stream, and memory is reused."""
    import numpy as np
    torch, weir, random = here.torch, here.weir, np.random.default_rng(0)
    clocks = weir.kernel_clocks(torch.ones(2, 4, dtype=torch.int64, device="cuda"), ["load", "store"])
    check([stage.laps for stage in clocks] == [4, 4], f"kernel_clocks of a tensor on the GPU: {clocks}")
    if not hasattr(weir, "MotionLibrary"):
        print("motion: this weir was built without it")
        return
    folder = tempfile.mkdtemp(prefix="weir-motion-gpu-")
    for i, frames in enumerate((300, 500)):
        np.savez(os.path.join(folder, f"walk_{i}.npz"), fps=50, joint_pos=random.normal(size=(frames, 29)),
                 body_pos_w=random.normal(size=(frames, 14, 3)), body_quat_w=random.normal(size=(frames, 14, 4)))
    on_host, library = weir.MotionLibrary(folder), weir.MotionLibrary(folder, device="cuda:0")
    shutil.rmtree(folder)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for n in (1, 100, 4096, 100000):
        clips = torch.randint(len(library), (n,), device="cuda")
        times = torch.rand(n, device="cuda") * library.durations[clips]
        wanted = on_host.state(clips.cpu(), times.cpu())
        torch.cuda.synchronize()
        sums = []
        for i in range(60):  # earlier kernels delay the stream, so that states are read long after the call
            with torch.cuda.stream(streams[i % 3]):
                torch.cuda._sleep(2000000)
                state = library.state(clips, times + 0)
                sums.append([part.double().sum() for part in state])
                if i % 20 == 19:
                    for name, part in state._asdict().items():
                        off = (part.cpu() - getattr(wanted, name)).abs().max().item()
                        scale = max(1.0, getattr(wanted, name).abs().max().item())
                        check(off < 2e-5 * scale, f"motion: {name} of {n} queries is {off} off")
                del state
        torch.cuda.synchronize()
        for part, name in enumerate(library.state(clips, times)._fields):
            values = {round(one[part].item(), 6) for one in sums}
            check(len(values) == 1, f"motion: {name} of {n} queries differs from call to call: {values}")
    clips, times = clips[:4096].contiguous(), times[:4096].contiguous()
    for _ in range(20):
        library.state(clips, times)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(500):
        library.state(clips, times)
    torch.cuda.synchronize()
    print(f"motion: {1e6 * (time.perf_counter() - start) / 500:.1f} us a call of 4096 queries")
    library.close()


def costs(here):
    torch, weir = here.torch, here.weir

    def each(what, n, call):
        call(n // 10)
        torch.cuda.synchronize()
        times = []
        for _ in range(7):
            before = time.perf_counter()
            call(n)
            times.append((time.perf_counter() - before) / n * 1e9)
            torch.cuda.synchronize()
        print(f"{what:42s} {statistics.median(times):9.0f} ns ({min(times):.0f} - {max(times):.0f})")
        return statistics.median(times)

    def empty(n):
        for _ in range(n):
            pass

    def stage(n):
        timer = weir.stage("test cost")
        for _ in range(n):
            with timer:
                pass

    def named(n):
        for _ in range(n):
            with weir.stage("test cost"):
                pass

    def record_function(n):
        for _ in range(n):
            with torch.profiler.record_function("test"):
                pass

    def cuda_stage(n):
        for _ in range(n):
            with weir.stage("test cost on the GPU", cuda=True):
                pass

    def events(n):
        for _ in range(n):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            end.record()

    each("an empty loop", 200_000, empty)
    each("weir.stage, made before", 200_000, stage)
    cost = each("weir.stage(name)", 200_000, named)
    each("torch.profiler.record_function", 50_000, record_function)
    with torch.cuda.stream(torch.cuda.Stream()):
        each("weir.stage(name, cuda=True)", 500, cuda_stage)
        each("two torch.cuda.Event, made and recorded", 500, events)
    check(cost < 1000, f"weir.stage takes {cost:.0f} ns")


# ---- rates ----

def flags(decoder, options):
    return {"decoder": decoder, "batch_size": options.batch_size, "workers": "auto", "device": "cpu" if decoder == "cpu"
            else "cuda:0"}


def program_rate(decoder, options):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        how = flags(decoder, options)
        command = [options.weir, "run", options.data, "--device", how["device"], "--decoder",
                   "turbo" if decoder == "cpu" else decoder, "--batch-size", str(how["batch_size"]), "--dtype", "u8",
                   "--image-layout", "nchw", "--train-split", "1", "--seconds", str(options.seconds), "--log", log.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 4 * options.seconds)
        if done.returncode != 0:
            fail(f"{' '.join(command)}: {done.stderr[-500:]}")
        for line in log.read().decode().splitlines():
            row = json.loads(line)
            if row["type"] == "measured":
                return row["images_per_s"]
    return fail("weir run wrote no line 'measured'")


def python_rate(decoder, options):
    command = [sys.executable, os.path.abspath(__file__), options.data, "--seconds", str(options.seconds),
               "--batch-size", str(options.batch_size), "--rate-of", decoder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 4 * options.seconds)
    if done.returncode != 0:
        fail(f"{' '.join(command)}: {done.stdout[-300:]} {done.stderr[-500:]}")
    return float(done.stdout.split()[-1])


def rate_of(options):
    """Images/s into torch after a warm-up, in a separate process like the program's."""
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    import contextlib

    import torch
    import weir
    how = flags(options.rate_of, options)
    on_gpu = how["device"] != "cpu"
    around = torch.cuda.stream(torch.cuda.Stream()) if on_gpu else contextlib.nullcontext()
    with around, weir.Loader(options.data, device=how["device"], decoder="turbo" if not on_gpu else how["decoder"],
                             batch_size=how["batch_size"], normalize=True) as loader:
        images, begin, warm = 0, 0.0, time.monotonic() + max(1.0, options.seconds / 4)
        while True:
            for batch in loader:
                now = time.monotonic()
                if begin:
                    images += batch["image"].shape[0] * batch["image"].shape[1]
                elif now >= warm:
                    begin = now
                if begin and now - begin >= options.seconds:
                    if on_gpu:
                        torch.cuda.synchronize()
                    print(images / (time.monotonic() - begin))
                    return


def rates(here):
    decoders = ["cpu", *[name for name in here.names() if name != "turbo"]]
    slow = []
    for decoder in decoders:
        ours, theirs = [], []
        for _ in range(here.options.rounds):
            theirs.append(program_rate(decoder, here.options))
            ours.append(python_rate(decoder, here.options))
        ratios = [a / b for a, b in zip(ours, theirs)]
        ratio = statistics.median(ours) / statistics.median(theirs)
        print(f"{decoder:7s} program {statistics.median(theirs):9,.0f} images/s ({min(theirs):,.0f} - {max(theirs):,.0f}), "
              f"Python {statistics.median(ours):9,.0f} ({min(ours):,.0f} - {max(ours):,.0f}): {ratio:.3f} "
              f"({min(ratios):.3f} - {max(ratios):.3f})", flush=True)
        if ratio < TARGET:
            slow.append(f"{decoder} {ratio:.3f}")
    check(not slow, f"below {TARGET} of the program: {', '.join(slow)}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?")
    parser.add_argument("--part", action="append", choices=PARTS, help="part to run (default all)")
    parser.add_argument("--seconds", type=float, default=5, help="duration of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--weir", default=os.environ.get("WEIR_PROGRAM") or shutil.which("weir") or "build/release/weir")
    parser.add_argument("--only", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--rate-of", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_part(part, options):
    command = [sys.executable, os.path.abspath(__file__), options.data, "--only", part, "--seconds", str(options.seconds),
               "--rounds", str(options.rounds), "--batch-size", str(options.batch_size), "--weir", options.weir]
    limit = LIMIT_S[part] + 10 * options.seconds
    if part == "rates":
        limit = 120 + 6 * options.rounds * (30 + 3 * options.seconds)
    print(f"== {part} (at most {limit:.0f} s)", flush=True)
    before = time.monotonic()
    try:
        code = subprocess.run(command, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        code = "no end in time"
    result = "fine" if code == 0 else f"FAILED ({code})"
    return f"{part:8s} {result}, {time.monotonic() - before:.1f} s"


def main():
    options = parse()
    if options.rate_of:
        rate_of(options)
        return 0
    if options.only:
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
        faulthandler.dump_traceback_later(LIMIT_S[options.only] + 5 * options.seconds, exit=False)
        globals()[options.only](Here(options))
        faulthandler.cancel_dump_traceback_later()
        return 0
    seen = subprocess.run([sys.executable, "-c", "import torch, weir; print(torch.__version__, torch.cuda.is_available(), "
                           "torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"], capture_output=True,
                          text=True, timeout=120)
    print(seen.stdout.strip() or seen.stderr.strip()[-500:], flush=True)
    if seen.returncode != 0 or " True " not in seen.stdout:
        print("skipped: needs torch with CUDA, and weir")
        return 77
    made = None
    if not options.data:
        made = tempfile.mkdtemp(prefix="weir-python-gpu-")
        options.data = os.path.join(made, "data")
        subprocess.run([options.weir, "synth", options.data, "--format", "act-jpeg", "--episodes", "6", "--steps", "60",
                        "--cameras", "top,left,right,low"], check=True, stdout=subprocess.DEVNULL, timeout=300)
    try:
        lines = [run_part(part, options) for part in options.part or PARTS]
    finally:
        if made:
            shutil.rmtree(made)
    print("== summary")
    print("\n".join(lines))
    return int(any("FAILED" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
