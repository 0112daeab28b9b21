import enum
from os import PathLike
from types import TracebackType
from typing import (
    Any,
    Callable,
    Generic,
    Iterable,
    Iterator,
    Literal,
    Mapping,
    NamedTuple,
    NoReturn,
    Self,
    Sequence,
    TypedDict,
    Unpack,
    overload,
)

from ._motion import MotionClip as MotionClip, MotionLibrary as MotionLibrary
from ._motion import MotionState as MotionState, motion_state as motion_state
from torch import Tensor  # type: ignore[import-not-found]
from typing_extensions import TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Watched = TypeVar("_Watched", bound=Iterable[Any])
_T = TypeVar("_T", default=Any)  # torch.Tensor or weir.Array
_B = TypeVar("_B", covariant=True, default=Any)  # type of a batch
_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Lang = Literal["en", "zh"]

__version__: str

class Error(RuntimeError): ...

class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> Literal["uint8", "uint16", "float32", "float16", "bfloat16", "bool"]: ...
    @property
    def device(self) -> str: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Array: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Act(NamedTuple, Generic[_T]):
    image: _T
    qpos: _T
    action: _T
    is_pad: _T

# keys="weir"; a dict at run time.
class _Batch(dict[str, _T]):
    @overload
    def __getitem__(self, key: Literal["image", "depth", "qpos", "action", "is_pad"], /) -> _T: ...
    @overload
    def __getitem__(self, key: str, /) -> _T: ...

class Episode(NamedTuple):
    path: str
    group: str
    steps: int
    layout: str

class Camera(NamedTuple):
    name: str
    codec: str
    width: int
    height: int

class StageStats(NamedTuple):
    stage: str
    kind: Literal["work", "inclusive", "span", "wait", "loop"]
    side: Literal["worker", "consumer", "helper", "gpu"]
    calls: int
    total: float
    own: float
    mean: float
    min: float
    p50: float
    p90: float
    p99: float
    max: float
    cpu: float | None

class _Statistics(TypedDict):
    qpos_mean: list[float]
    qpos_std: list[float]
    action_mean: list[float]
    action_std: list[float]

class Dataset:
    path: str
    episodes: list[Episode]
    cameras: list[Camera]
    statistics: _Statistics
    def __init__(self, path: str, about: dict[str, Any]) -> None: ...
    def __len__(self) -> int: ...

class _Options(TypedDict, total=False):
    ... # OPTIONS

class Loader(Generic[_B]):
    batch_size: int
    dataset: Dataset
    url: str | None
    ... # OVERLOADS
    def __iter__(self) -> Iterator[_B]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> NoReturn: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None = ..., error: BaseException | None = ..., trace: TracebackType | None = ..., /
    ) -> None: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def set_epoch(self, epoch: int, /) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
    def table(self, lang: _Lang = "en", *, whole: bool = False) -> str: ...
    def verdict(self, lang: _Lang = "en", /) -> str: ...

class KernelStage(NamedTuple):
    stage: str
    laps: int
    ticks: int
    mean_ticks: float
    min_ticks: int
    max_ticks: int
    last_ticks: int
    share: float
    mean_ns: float | None

class KernelClocks(list[KernelStage]):
    def table(self) -> str: ...
    def export_csv(self, path: str | PathLike[str]) -> None: ...

def kernel_clocks(
    ticks: Any, stages: Iterable[str | enum.Enum], *, name: str = "kernel", ticks_per_ns: float | None = None
) -> KernelClocks: ...

class _Timer:
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None = ..., error: BaseException | None = ..., trace: TracebackType | None = ..., /
    ) -> None: ...
    def __call__(self, function: _Function, /) -> _Function: ...

class Stage(_Timer): ...

def stage(name: str, /, *, cuda: bool = False) -> Stage: ...
def log_timing(name: str, seconds: float, /, *, elsewhere: bool = False) -> None: ...
def table(lang: _Lang = "en", *, whole: bool = False, all_loaders: bool = False) -> str: ...
def verdict(lang: _Lang = "en", *, all_loaders: bool = False) -> str: ...
def print_timing_stats(lang: _Lang = "en", *, whole: bool = False, all_loaders: bool = False) -> None: ...
def watch(
    loader: _Watched, *, every: int = 1, log: str | PathLike[str] | None = None,
    html: str | PathLike[str] | None = None, headroom: bool = False,
    serve: bool | str | None = None, prometheus: str | PathLike[str] | None = None, name: str | None = None
) -> _Watched: ...
def stats() -> list[StageStats]: ...
def metrics() -> dict[str, float]: ...
def reset() -> None: ...

class RecordFunction(_Timer): ...

def record_function(name: str, /) -> RecordFunction: ...

class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 1

class ProfilerAction(enum.Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3

_SortBy = Literal[
    "self_cpu_time_total",
    "cpu_time_total",
    "cpu_time",
    "self_cuda_time_total",
    "cuda_time_total",
    "cuda_time",
    "self_device_time_total",
    "device_time_total",
    "device_time",
    "self_cpu_memory_usage",
    "cpu_memory_usage",
    "self_cuda_memory_usage",
    "cuda_memory_usage",
    "self_device_memory_usage",
    "device_memory_usage",
    "count",
]

class Average(NamedTuple):
    key: str
    self_cpu_time_total: float
    cpu_time_total: float
    self_device_time_total: float
    device_time_total: float
    self_cpu_memory_usage: int
    cpu_memory_usage: int
    self_device_memory_usage: int
    device_memory_usage: int
    count: int  # type: ignore[assignment]
    device_type: Literal["cpu", "cuda"]
    input_shapes: str
    stack: str
    is_user_annotation: bool
    flops: float
    ... # PROPERTIES

class Averages(list[Average]):
    def table(
        self,
        sort_by: _SortBy | None = None,
        row_limit: int = 100,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str: ...

def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]: ...
def tensorboard_trace_handler(
    dir_name: str | PathLike[str], worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]: ...

class profile:
    schedule: Callable[[int], Any] | None
    on_trace_ready: Callable[[profile], Any] | None
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    operators: bool
    step_num: int
    current_action: ProfilerAction
    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        operators: bool = True,
    ) -> None: ...
    def __enter__(self) -> profile: ...
    def __exit__(
        self, kind: type[BaseException] | None = ..., error: BaseException | None = ..., trace: TracebackType | None = ...
    ) -> None: ...
    def start(self) -> None: ...
    def step(self) -> None: ...
    def stop(self) -> None: ...
    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages: ...
    def export_chrome_trace(self, path: str | PathLike[str], use_python_export: bool = False) -> None: ...
    def export_stacks(
        self,
        path: str | PathLike[str],
        metric: Literal["self_cpu_time_total", "self_cuda_time_total"] = "self_cpu_time_total",
    ) -> None: ...
