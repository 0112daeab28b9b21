"""The bottleneck of a training loop, from its stages alone: a sentence, remedies, and the parts of the loop's time."""
import collections

from . import _weir

_TEXTS = {
    "lead": "verdict: ",
    "others take cores": "The loop waits for a core {share:.1f} % of its time: of {cores}, other processes use {others:.2f} "
                         "and this one uses {used:.2f}. ",
    "unknown take cores": "The loop waits for a core {share:.1f} % of its time: of {cores}, this process gets {used:.2f}. ",
    "own take cores": "The loop waits for a core {share:.1f} % of its time: of {cores}, this process and its children use "
                      "{used:.2f}. ",
    "quota take cores": "The CPU quota, {quota:.3g} cores, stops the loop {share:.1f} % of its time. ",
    "stop": ".\n",
    "takes": "{name} takes {share:.1f} % of the loop's time ({s:.3f} of {wall:.3f} s)",
    "inside": ", inside {root}, which takes {share:.1f} % in all",
    "waits": ": the loop waits for data",
    "slowest inside": "; the slowest stage inside it is {name}, {share:.1f} %",
    "nothing inside": "; no stage inside it was timed, so the cause of the wait is unknown",
    "workers": ": DataLoader's worker processes keep their stages to themselves",
    "no stage": "No stage covers {share:.1f} % of the loop's time ({s:.3f} of {wall:.3f} s), so the bottleneck is "
                "unknown: put weir.stage around the loop's parts, including the wait for the next batch",
    "next": "; of the stages {name} takes most, {share:.1f} %",
    "helps": "  {label:<14}  {remedy}\n",
    "also": "  also: no stage covers {share:.1f} % of the loop's time.\n",
    "parts": "  parts of the loop's {wall:.3f} s: ",
    "itself": "{name} itself",
    "others": "{n} others",
    "unattributed": "in no stage",
    "part": "{name} {share:.1f} %",
    "loader": "  no loader is open, so this verdict judges the loop alone; for the limit of loading, print it before "
              "the loader is closed.\n",
}
_WORKERS = "more DataLoader workers, while cores are idle: each runs this code in its own process"
_MORE = "docs/trace.md, \"Why is my loader slow?\": causes and remedies by what the table shows"
_REMEDIES = {
    "others": ["stop other processes, or use a machine or job with cores of its own"],
    "own": ["fewer threads and workers in this process, at most one per core: torch.set_num_threads(1), "
            "cv2.setNumThreads(1)"],
    "quota": ["a larger CPU quota; fewer threads and workers use up the quota more slowly"],
    "computes": [_WORKERS, "less work per sample: smaller images, or decode once and store the result"],
    "sleeps": ["keep files open between samples; copy the data to a local disk",
               "more DataLoader workers, so that more reads are in flight"],
    "wait computes": [_WORKERS, "fewer bytes to collate: uint8 until the GPU, smaller images"],
    "wait sleeps": ["put weir.stage around the rest of __getitem__ too, to see what sleeps"],
    "workers": ["python -m weir watch shows the slow part inside the workers, or more workers, while cores are idle"],
    "unknown wait": ["python -m weir watch shows the slow part of a DataLoader; put weir.stage around the parts of "
                     "another loader"],
    "step": ["the largest part is the training step, not loading: weir report TRACE, of a trace of torch.profiler, "
             "shows what it waits for"],
}
_PARTS_MOST = 10
_REMEDIES_MOST = 3
_Part = collections.namedtuple("Part", "name kind own parent purpose ready")


class Loop:
    """Time of a loop: self time of each stage (parts), unattributed time, and who takes cores from it."""

    def __init__(self, wall, unattributed, parts, shortage):
        self.wall, self.unattributed, self.shortage = wall, unattributed, shortage
        self.parts = {part[0]: _Part(*part) for part in parts}
        self.groups = {}  # outermost stage -> itself and the stages inside it
        for name in self.parts:
            self.groups.setdefault(self._outermost(name), []).append(name)

    def _outermost(self, name):
        seen = {name}
        while self.parts[name].parent in self.parts and self.parts[name].parent not in seen:
            name = self.parts[name].parent
            seen.add(name)
        return name

    def own(self, name):
        return self.parts[name].own

    def total(self, root):
        return sum(map(self.own, self.groups[root]))

    def root(self):
        """The outermost stage that takes most, with the stages inside it."""
        return max(self.groups, key=self.total)

    def inside(self, root):
        """The stages inside, the slowest first."""
        return sorted((name for name in self.groups[root] if name != root), key=self.own, reverse=True)

    def slowest(self):
        """The stage that takes most by itself, in the root; None if more time is in no stage."""
        root = self.root()
        if self.unattributed > self.total(root):
            return None
        return max([root] + self.inside(root), key=self.own)


def of(found):
    """The loop found by _weir._loop; None without stages."""
    loop = Loop(*found) if found else None
    return loop if loop and loop.parts and loop.wall > 0 else None


def _shortage(loop):
    if not loop.shortage:
        return ""
    who, share, others, used, cores, quota = loop.shortage
    key = "unknown" if who == "others" and others < 0 else who
    return _TEXTS[f"{key} take cores"].format(share=100 * share, others=others, used=used, quota=quota,
                                              cores=f"{cores} core{'s' * (cores != 1)}")


def _cause(loop, workers, had_loader, say):
    root = loop.root()
    total = loop.total(root)
    slowest, inside = loop.slowest(), loop.inside(root)
    if slowest is None:
        return say("no stage", loop.unattributed) + say("next", total, name=root)
    waits = say("waits") if loop.parts[root].kind == "wait" else ""
    if slowest != root:
        return say("takes", loop.own(slowest), name=slowest) + say("inside", total, root=root) + waits
    text = say("takes", total, name=root) + waits
    if inside:
        return text + say("slowest inside", loop.own(inside[0]), name=inside[0])
    if not waits or had_loader:
        return text
    return text + say("nothing inside") + (say("workers") if workers else "")


def _of_part(loop, workers, name):
    """(key of the remedies for a part, condition under which they apply)"""
    root = loop.root()
    part = loop.parts[name]
    computes = part.ready < 0 or part.ready >= _weir._least["computes"]
    if part.kind == "wait":
        if not loop.inside(root):
            return "workers" if workers else "unknown wait", ""
        return "wait computes" if computes else "wait sleeps", ""
    if part.purpose == "step":
        return "step", ""
    is_loading = part.purpose == "loading" or loop.parts[root].kind == "wait"
    key = "computes" if computes else "workers" if workers and not is_loading else "sleeps"
    return key, "" if is_loading else f"if {name} is part of loading: "


def _helps(loop, workers, had_loader):
    name = loop.slowest()
    remedies = list(_REMEDIES[loop.shortage[0]]) if loop.shortage else []
    if name is not None and not (had_loader and loop.parts[name].kind == "wait"):
        key, condition = _of_part(loop, workers, name)
        first, *more = _REMEDIES[key]
        remedies += [condition + first, *more]
        advice = _weir._stage_advice(name) if key == "step" else None
        remedies += [advice] if advice else []
    if not remedies:
        return ""
    labels = ["what helps"] + ["also"] * (_REMEDIES_MOST - 1)
    lines = list(zip(labels, remedies)) + [("more", _MORE)]
    return "".join(_TEXTS["helps"].format(label=label, remedy=remedy) for label, remedy in lines)


def _parts(loop, say):
    names = sorted(loop.parts, key=loop.own, reverse=True)
    parts = []
    for name in names[:_PARTS_MOST]:
        has_inside = any(part.parent == name for part in loop.parts.values())
        parts.append(say("part", loop.own(name), name=say("itself", name=name) if has_inside else name))
    rest = names[_PARTS_MOST:]
    if rest:
        parts.append(say("part", sum(map(loop.own, rest)), name=say("others", n=len(rest))))
    parts.append(say("part", loop.unattributed, name=say("unattributed")))
    return say("parts") + " | ".join(parts) + "\n"


def verdict(loop, workers, had_loader):
    """workers: number of DataLoader workers that timed stages in their own processes."""
    def say(key, seconds=0.0, **values):
        return _TEXTS[key].format(s=seconds, share=100 * seconds / loop.wall, wall=loop.wall, **values)

    text = _TEXTS["lead"] + _shortage(loop) + _cause(loop, workers, had_loader, say) + _TEXTS["stop"]
    text += _helps(loop, workers, had_loader)
    if _weir._least["no_stage"] * loop.wall < loop.unattributed <= max(map(loop.total, loop.groups)):
        text += say("also", loop.unattributed)
    return text + _parts(loop, say) + (_TEXTS["loader"] if had_loader else "")
