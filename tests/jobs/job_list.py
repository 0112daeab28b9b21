"""The jobs of tests/jobs: training programs, each with one known slow part, the causes that a verdict may name first, and
what following the advice changes."""
import copy



class Job:
    """dataset   "kind": a class of job_data.py, and its options
    loader    arguments of DataLoader, and cv2_threads, torch_threads, dear_start of its worker_init_fn
    expected  causes; the first one that weir.watch names must be one of them
    top       causes that weir top may name first besides; from outside, busy workers look alike
    advices   {name: changes}, each a dict with "dataset", "loader" and fields of the job
    cores     cores that the job may use; 0: all
    needs     "cuda", "quota", "disk", "memory", "cv2", "torchvision", "av": what the machine must have
    quota     cores of a CPU quota;  disk: bytes/s of the storage;  memory: bytes of a control group
    loops     other processes that compute on the job's cores"""

    def __init__(self, name, expected, dataset, loader=None, top=(), advices=None, cores=2, needs=(), step_ms=1,
                 step="sleep", shuffle=True, gil_thread=False, spin=0, quota=0, disk=0, memory=0, loops=0,
                 non_blocking=False, gpu_float=False, named=False):
        self.name, self.named = name, named
        self.expected = {expected} if isinstance(expected, str) else set(expected)
        self.top = self.expected | set(top)
        self.dataset = dataset
        self.loader = {"batch_size": 16, "num_workers": 2, "prefetch_factor": 2, "persistent_workers": 1, **(loader or {})}
        self.advices, self.cores, self.needs = advices or {}, cores, set(needs)
        self.step_ms, self.step, self.shuffle, self.gil_thread, self.spin = step_ms, step, shuffle, gil_thread, spin
        self.quota, self.disk, self.memory, self.loops = quota, disk, memory, loops
        self.non_blocking, self.gpu_float = non_blocking, gpu_float

    def with_loader(self, **changes):
        job = copy.deepcopy(self)
        job.loader.update(changes)
        return job

    def after(self, advice):
        job = copy.deepcopy(self)
        for key, value in self.advices[advice].items():
            if isinstance(getattr(job, key), dict):
                getattr(job, key).update(value)
            else:
                setattr(job, key, value)
        return job


J = Job
BUSY = ["workers-saturated"]
LIST = [
    # the fourteen
    J("decode", "decode", {"kind": "Jpegs"}, top=BUSY, named=True,
      advices={"fixed": {"dataset": {"decoded": True}}, "half": {"dataset": {"decoded": "half"}}}),
    J("lock", "lock", {"kind": "Hdf5", "locked": True}, {"num_workers": 4}, named=True,
      advices={"fixed": {"dataset": {"locked": False}}}),
    J("transform", "own-code", {"kind": "OwnTransform"}, top=BUSY, named=True,
      advices={"fixed": {"dataset": {"cheap": True}}, "half": {"dataset": {"cheap": "half"}}}),
    J("transform-class", "transform", {"kind": "Torchvision"}, top=BUSY, needs=["torchvision"], named=True,
      advices={"fixed": {"dataset": {"cheap": True}}, "half": {"dataset": {"cheap": "half"}}}),
    J("slow-worker", "slow-worker", {"kind": "SlowWorker"}, {"num_workers": 3}, named=True,
      advices={"in_order": {"loader": {"in_order": 0}}, "fixed": {"dataset": {"delay_ms": 0}}}),
    J("slow-file", "slow-file", {"kind": "Hdf5", "data": "hdf5_slow"}, top=BUSY, named=True,
      advices={"fixed": {"dataset": {"data": "hdf5"}}}),
    J("collate", "collate", {"kind": "Small"}, {"collate": "slow_collate"}, top=BUSY, named=True,
      advices={"fixed": {"loader": {"collate": None}}, "half": {"loader": {"collate": "half_collate"}}}),
    J("pin-off", "pin-off", {"kind": "Small", "side": 224, "dtype": "float32"}, {"num_workers": 8, "batch_size": 32}, cores=0,
      needs=["cuda"], named=True, advices={"pin_memory": {"loader": {"pin_memory": 1}, "non_blocking": True}}),
    J("transfer", "transfer", {"kind": "Small", "side": 320, "dtype": "float32"},
      {"num_workers": 12, "batch_size": 64, "pin_memory": 1}, cores=0, needs=["cuda"], named=True, non_blocking=True,
      advices={"uint8": {"dataset": {"dtype": "uint8"}, "gpu_float": True}}),
    J("too-few-workers", "too-few-workers", {"kind": "Jpegs"}, {"num_workers": 1}, named=True,
      advices={"num_workers": {"loader": {"num_workers": 2}}}),
    J("cv2-threads", "too-many-threads", {"kind": "SmallCv"}, {"num_workers": 6, "cv2_threads": 64}, needs=["cv2"], named=True,
      advices={"cv2_threads": {"loader": {"cv2_threads": 0}}}),
    J("quota", "quota", {"kind": "Jpegs"}, quota=0.5, needs=["quota"], named=True, advices={"fixed": {"quota": 0}}),
    J("neighbour", "neighbours", {"kind": "Jpegs"}, loops=4, named=True, advices={"fixed": {"loops": 0}}),
    J("gil", "gil", {"kind": "Small"}, step="python", gil_thread=True, named=True,
      advices={"fixed": {"gil_thread": False}}),
    J("slow-step", {"step", "not-data-bound"}, {"kind": "Jpegs"}, step_ms=120, named=True,
      advices={"fixed": {"step_ms": 60}}),
    # others that users meet
    J("shards", "imbalance", {"kind": "Shards"}, {"num_workers": 2}, top=["slow-worker"], advices={"fixed": {"dataset": {"even": True}}}),
    J("h5py-open", "read-cpu", {"kind": "ManyKeys"}, top=BUSY, advices={"fixed": {"dataset": {"keep": True}}, "half": {"dataset": {"keep": "half"}}}),
    J("start-up", "start-up", {"kind": "Small", "items": 320}, {"persistent_workers": 0, "dear_start": 1},
      advices={"persistent_workers": {"loader": {"persistent_workers": 1}}}),
    J("uneven", {"imbalance", "too-few-workers"}, {"kind": "Uneven"}, {"prefetch_factor": 1, "num_workers": 2, "batch_size": 8},
      step_ms=14, advices={"prefetch_factor": {"loader": {"prefetch_factor": 4}}}),
    J("pil-lazy", "decode", {"kind": "LazyPil"}, top=BUSY, advices={"fixed": {"dataset": {"decoded": True}}, "half": {"dataset": {"decoded": "half"}}}),
    J("video", "decode", {"kind": "Video"}, top=BUSY, needs=["cv2"],
      advices={"fixed": {"dataset": {"seek": False}}}),
    J("video-av", {"decode", "own-code"}, {"kind": "AvVideo"}, top=BUSY, needs=["cv2", "av"],
      advices={"fixed": {"dataset": {"seek": False}}}),
    J("no-workers", "too-few-workers", {"kind": "Jpegs"}, {"num_workers": 0},
      advices={"num_workers": {"loader": {"num_workers": 2}}}),
    J("pickle", {"workers-saturated", "collate", "gil"}, {"kind": "Pieces"}, {"collate": "list_collate"},
      advices={"fixed": {"dataset": {"pieces": 10}}}),
    J("network", {"too-few-workers", "storage"}, {"kind": "Network", "delay_server_ms": 10},
      advices={"num_workers": {"loader": {"num_workers": 8}}}),
    J("torch-threads", "too-many-threads", {"kind": "TorchOps"}, {"num_workers": 3, "torch_threads": 12},
      advices={"torch_threads": {"loader": {"torch_threads": 1}}}),
    J("storage", "storage", {"kind": "ColdReads"}, advices={"fixed": {"dataset": {"cached": True}}}),
    J("disk-limit", "storage", {"kind": "ColdReads", "reads": 2}, disk=40_000_000, needs=["disk"],
      advices={"fixed": {"dataset": {"cached": True}, "disk": 0}}),
    J("memory", "storage", {"kind": "Mapped"}, memory=420 << 20, needs=["memory"], advices={"fixed": {"memory": 0}}),
    J("sleeping-file", "slow-file", {"kind": "SleepingFile"}, top=["too-few-workers", *BUSY],
      advices={"fixed": {"dataset": {"delay_ms": 0}}, "num_workers": {"loader": {"num_workers": 5}}}),
    J("niced-worker", {"slow-worker", "neighbours"}, {"kind": "NicedWorker"}, spin="last",
      advices={"fixed": {"dataset": {"niced": False}, "spin": 0}}),
    J("own-file", "own-code", {"kind": "OwnFile"}, top=BUSY),
    J("balanced", {"not-data-bound", "step"}, {"kind": "Small"}, step_ms=20, step="compute"),
    J("pin-thread", {"transfer", "step", "not-data-bound"}, {"kind": "Small", "side": 320, "dtype": "float32"},
      {"num_workers": 8, "batch_size": 64, "pin_memory": 1}, cores=0, needs=["cuda"], step_ms=0.1, non_blocking=True),
]
JOBS = {job.name: job for job in LIST}
