from os import PathLike
from types import TracebackType
from typing import Any, Callable, Iterator, Literal, NamedTuple, Sequence, TypedDict, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Lang = Literal["en", "zh"]

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
    def dtype(self) -> Literal["uint8", "uint16", "float32", "bool"]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Array: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Act(NamedTuple):
    image: Any
    qpos: Any
    action: Any
    is_pad: Any

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

class Loader:
    batch_size: int
    dataset: Dataset
    def __init__(
        self,
        path: str | PathLike[str],
        batch_size: int = 8,
        shuffle: bool = True,
        num_workers: int | Literal["auto"] | None = "auto",
        prefetch_factor: int | None = None,
        drop_last: bool = False,
        seed: int = 0,
        device: Any = "cpu",
        image_dtype: Literal["uint8", "float32"] | None = None,
        layout: Literal["nchw", "nhwc"] = "nchw",
        chunk_size: int = 20,
        obs_history: int = 1,
        cameras: str | Sequence[str] | None = None,
        image_size: tuple[int, int] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        keys: Literal["weir", "act", "lerobot"] = "weir",
        *,
        normalize: bool | None = None,
        tensors: Literal["auto", "torch", "array"] = "auto",
        split: Literal["train", "val"] = "train",
        train_split: float = 1.0,
        sampling: Literal["timestep", "episode"] = "timestep",
        pad: Literal["zero", "last"] = "zero",
        action_offset: int = 0,
        color: Literal["rgb", "bgr"] = "rgb",
        crop: str | None = None,
        on_error: Literal["fail", "skip", "substitute"] = "fail",
        max_batches: int = 0,
        decode_cache: int = 0,
        wrap: bool = False,
        qpos_keys: str | Sequence[str] | None = None,
        action_keys: str | Sequence[str] | None = None,
        image_keys: str | Sequence[str] | None = None,
        file_split: str | None = None,
        index: str | None = None,
        io: str = "auto",
        decoder: str = "auto",
        allow_ragged: bool = False,
        allow_external: bool = False,
    ) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Loader: ...
    def __exit__(
        self, kind: type[BaseException] | None = ..., error: BaseException | None = ..., trace: TracebackType | None = ..., /
    ) -> None: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def set_epoch(self, epoch: int, /) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
    def table(self, lang: _Lang = "en", /) -> str: ...
    def verdict(self, lang: _Lang = "en", /) -> str: ...

class Stage:
    def __enter__(self) -> Stage: ...
    def __exit__(
        self, kind: type[BaseException] | None = ..., error: BaseException | None = ..., trace: TracebackType | None = ..., /
    ) -> None: ...
    def __call__(self, function: _Function, /) -> _Function: ...

def stage(name: str, /) -> Stage: ...
def log_timing(name: str, seconds: float, /) -> None: ...
def table(lang: _Lang = "en") -> str: ...
def verdict(lang: _Lang = "en") -> str: ...
def print_timing_stats(lang: _Lang = "zh") -> None: ...
