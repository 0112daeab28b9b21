"""weir.MotionLibrary and weir.motion_state: motion clips sampled into tensors."""
import array
import collections
import os
import re
import sys

from . import _arguments, _cuda, _weir

MotionClip = collections.namedtuple("MotionClip", "name frames fps duration loop")
MotionClip.__doc__ = "A clip: its name, number of frames, frames per second, seconds, and whether it repeats."
MotionState = collections.namedtuple("MotionState", _weir._motion_results)
MotionState.__doc__ = """States of the robot, one per query: float32, (n, width), or (n, steps, width).

root_pos_w       3, metres, in the world's frame, as all _w
root_quat        4, w x y z, root to world
root_vel_w, root_vel_b            3, m/s; _b: in the root's frame
root_ang_vel_w, root_ang_vel_b    3, rad/s
dof_pos, dof_vel                  joints, rad and rad/s
key_body_pos_b   (..., bodies, 3), metres from the root, in its frame"""

_LOOPS = {None: 0, False: 1, True: 2}


class MotionLibrary(_weir._Motion):
    """Motion clips, sampled at given times, for the training of whole-body tracking.

        motions = weir.MotionLibrary("clips/")
        clips = torch.randint(len(motions), (4096,))
        times = torch.rand(4096) * motions.durations[clips]
        state = motions.state(clips, times)                # state.dof_pos: (4096, dofs) float32

    path        an NPZ or HDF5 file, a folder of them, or a list of such paths (extras/motion/README.md: Motion files)
    root_body   the root, by name or number; None = the first body
    key_bodies  list of bodies, by name or number; None = all except the root
    loop        True: clips repeat; False: they hold their last frame; None = as in the files
    device      "cpu"; "cuda" or "cuda:N": clips and states are in GPU memory
    num_threads CPU threads; "auto" = one per usable core
    tensors     "auto" = torch tensors if torch is installed (on a GPU: with CUDA), else weir.Array; "torch"; "array"

    .clips      list of MotionClip; len(motions) is their number
    .durations  seconds of each clip: a float32 tensor on the device; with weir.Array a list
    .dof_names, .body_names   lists (body_names: of the key bodies), or None if the files have none
    .num_dofs, .num_bodies    number of joints, and of key bodies
    """

    def __init__(self, path, *, root_body=None, key_bodies=None, loop=None, device="cpu", num_threads="auto",
                 tensors="auto"):
        if loop not in _LOOPS:
            raise ValueError(f"loop is None, True or False, not {loop!r}")
        if tensors not in ("auto", "torch", "array"):
            raise ValueError(f"tensors is 'auto', 'torch' or 'array', not {tensors!r}")
        threads = 0 if num_threads == "auto" else num_threads
        if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= 1024:
            raise ValueError(f"num_threads is 'auto' or 1 to 1024, not {num_threads!r}")
        one = isinstance(path, (str, bytes, os.PathLike)) or not hasattr(path, "__iter__")
        paths = tuple(_arguments.path("path", each) for each in ([path] if one else path))
        if not paths:
            raise ValueError(f"path must be a file, a folder or a list of them, not {_arguments.shown(path)}")
        gpu = _gpu(str(device))
        self._torch = torch = _cuda.torch_for(tensors, gpu >= 0)
        self._device = torch and torch.device("cpu" if gpu < 0 else f"cuda:{gpu}")
        clips, self.dof_names, self.body_names, self.num_dofs, self.num_bodies = self._open(
            paths, None if root_body is None else str(root_body), _bodies(key_bodies), _LOOPS[loop], gpu, threads,
            torch and torch.utils.dlpack.from_dlpack)
        self.clips = [MotionClip(*clip) for clip in clips]
        durations = [clip.duration for clip in self.clips]
        self.durations = torch.tensor(durations, dtype=torch.float32, device=self._device) if torch else durations
        self._on_gpu = torch is not None and gpu >= 0
        if self._on_gpu:
            self._numbers = torch.arange(len(clips), device=self._device)
            self._own = torch.cuda.ExternalStream(self._stream, device=self._device)
            self._handed_to = set()  # streams that have received results

    def __len__(self):
        return len(self.clips)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"weir.MotionLibrary({len(self)} clips, {self.num_dofs} dofs, {self.num_bodies} key bodies)"

    def state(self, clips, times):
        """The MotionState at times[i] seconds of clip clips[i].

        clips   integers (n,), 0 to len(motions) - 1
        times   (n,), or (n, steps): several times per clip. Before its start a clip holds its first frame; past its end
                it repeats if it loops, else holds its last frame

        Torch tensors of int64 and float32 on the library's device are used without a copy; anything else is converted.
        With weir.Array the arguments are lists or buffers of int64 and float32 (numpy.ndarray, array.array). The
        results' memory is reused after their last tensor goes. On a GPU the call is asynchronous, in the order of
        torch's current stream, and an invalid clip number is a device-side assertion, as for any index."""
        if self._torch is None:
            return self._state_of_buffers(clips, times)
        torch = self._torch
        clips = torch.as_tensor(clips, device=self._device)
        times = torch.as_tensor(times, dtype=torch.float32, device=self._device).detach().contiguous()
        envs, steps = _sizes(tuple(clips.shape), tuple(times.shape))
        if clips.is_floating_point() or clips.is_complex() or clips.dtype == torch.bool:
            raise TypeError(f"clips are integers, not {clips.dtype}")
        clips = clips.to(torch.int64).contiguous()
        if self._on_gpu:
            return self._state_on_gpu(clips, times, envs, steps)
        return MotionState(*self._sample(clips.data_ptr(), times.data_ptr(), envs, steps, False))

    def _state_on_gpu(self, clips, times, envs, steps):
        torch = self._torch
        clips = torch.index_select(self._numbers, 0, clips)  # asserts that the numbers are valid
        current = torch.cuda.current_stream(self._device)
        self._handed_to.add(current)
        for stream in self._handed_to:  # previous users of the memory must be done
            self._own.wait_stream(stream)
        with torch.cuda.device(self._device):
            state = MotionState(*self._sample(clips.data_ptr(), times.data_ptr(), envs, steps, True))
        current.wait_stream(self._own)
        return state

    def _state_of_buffers(self, clips, times):
        clips = array.array("q", clips) if isinstance(clips, (list, tuple, range)) else clips
        if isinstance(times, (list, tuple)):
            rows = [list(row) for row in times] if times and isinstance(times[0], (list, tuple)) else None
            if rows and any(len(row) != len(rows[0]) for row in rows):
                raise ValueError("times have rows of several lengths; give (n,) or (n, steps)")
            shape = (len(rows), len(rows[0])) if rows else (len(times),)
            times = array.array("f", [time for row in rows for time in row] if rows else times)
        else:
            shape = tuple(memoryview(times).shape)
        envs, steps = _sizes(tuple(memoryview(clips).shape), shape)
        return MotionState(*self._sample(clips, times, envs, steps, False))


def motion_state(motions, clips, times):
    """Returns motions.state(clips, times); motions is a MotionLibrary, or a path to open on the CPU for this call."""
    if isinstance(motions, MotionLibrary):
        return motions.state(clips, times)
    with MotionLibrary(motions) as library:
        return library.state(clips, times)


def _sizes(clips, times):
    """(n, steps). steps is 0 if times are (n,)."""
    if len(clips) != 1 or len(times) not in (1, 2) or times[0] != clips[0] or 0 in times:
        raise ValueError(f"clips are (n,), and times (n,) or (n, steps), at least one of each; not {clips} and {times}")
    return clips[0], times[1] if len(times) == 2 else 0


def _bodies(bodies):
    if bodies is None or isinstance(bodies, str):
        return bodies
    return ",".join(str(body) for body in bodies)


def _gpu(device):
    """The GPU's number, or -1 for the CPU."""
    named = re.fullmatch("cpu|cuda(:([0-9]{1,4}))?", device)
    if not named:
        raise ValueError(f"device is 'cpu', 'cuda' or 'cuda:N', not {device!r}")
    if device == "cpu":
        return -1
    torch = sys.modules.get("torch")
    if not named[1] and torch is not None and torch.cuda.is_initialized():
        return torch.cuda.current_device()
    return int(named[2] or 0)
