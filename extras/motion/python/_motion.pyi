from os import PathLike
from types import TracebackType
from typing import Any, Literal, NamedTuple, Sequence

_Path = str | bytes | PathLike[str] | PathLike[bytes]

class MotionClip(NamedTuple):
    name: str
    frames: int
    fps: float
    duration: float
    loop: bool

class MotionState(NamedTuple):
    root_pos_w: Any
    root_quat: Any
    root_vel_w: Any
    root_vel_b: Any
    root_ang_vel_w: Any
    root_ang_vel_b: Any
    dof_pos: Any
    dof_vel: Any
    key_body_pos_b: Any

class MotionLibrary:
    clips: list[MotionClip]
    durations: Any
    dof_names: list[str] | None
    body_names: list[str] | None
    num_dofs: int
    num_bodies: int
    def __init__(
        self,
        path: _Path | Sequence[_Path],
        *,
        root_body: str | int | None = None,
        key_bodies: str | Sequence[str | int] | None = None,
        loop: bool | None = None,
        device: Any = "cpu",
        num_threads: int | Literal["auto"] = "auto",
        tensors: Literal["auto", "torch", "array"] = "auto",
    ) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> MotionLibrary: ...
    def __exit__(
        self, kind: type[BaseException] | None = ..., error: BaseException | None = ..., trace: TracebackType | None = ..., /
    ) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def engine(self) -> str: ...
    def close(self) -> None: ...
    def state(self, clips: Any, times: Any) -> MotionState: ...

def motion_state(motions: MotionLibrary | _Path | Sequence[_Path], clips: Any, times: Any) -> MotionState: ...
