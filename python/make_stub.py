"""Writes the stub of the package: make_stub.py TEMPLATE STUB, with the package in PYTHONPATH.

The lines "... # NAME" of the template become what the package itself knows: the loader's keywords, which come from the table
of options, and the properties of an average."""
import os
import sys

import weir._weir  # otherwise the package would do without it

KEYWORDS = {keyword.name: keyword for keyword in weir._package._KEYWORDS}
NAMED = ("batch_size", "shuffle", "num_workers")  # in the overloads; the others are in _Options
TYPES = {"flag": "bool", "int": "int", "float": "float", "auto": "int", "bytes": "int | str",
         "size": "Sequence[int] | None", "names": "str | Sequence[str] | None", "path": "_Path | None", "text": "str"}
# Keywords that accept more than the table's option, and those that it lacks.
OTHERS = {"device": "Any", "dtype": "Any", "episodes": "str | Iterable[int] | None",
          "delta_indices": "str | Mapping[str, Iterable[int]] | None",
          "delta_timestamps": "Mapping[str, Iterable[float]] | None", "every": "int", "serve": "bool | str | None",
          "prometheus": "_Path | None"}


def type_of(keyword):
    if keyword.kind == "choice":
        return f"Literal[{', '.join(map(repr, keyword.choices))}]"
    kind = TYPES[keyword.kind] + ' | Literal["auto"] | None' * (keyword.kind == "auto" and keyword.preset != "None")
    return kind + " | None" * (keyword.preset == "None" and not kind.endswith("None"))


def options():
    types = {name: type_of(keyword) for name, keyword in KEYWORDS.items() if name not in NAMED} | OTHERS
    return "".join(f"    {name}: {kind}\n" for name, kind in types.items())


def overloads():
    """The type of a batch depends on its keys and tensors, whose defaults are the first of each."""
    named = "".join(f"        {name}: {type_of(KEYWORDS[name])} = {KEYWORDS[name].preset},\n" for name in NAMED)
    for keys, batch in (("weir", "_Batch[{}]"), ("act", "Act[{}]"), ("lerobot", "dict[str, {}]")):
        for tensors, value in ((' Literal["auto", "torch"] = "auto"', "Tensor"), (' Literal["array"]', "Array")):
            default = ' = "weir"' * (keys == "weir")
            yield (f"    @overload\n    def __init__(\n        self: Loader[{batch.format(value)}],\n        path: _Path,\n"
                   f'{named}        *,\n        keys: Literal["{keys}"]{default},\n        tensors:{tensors},\n'
                   "        **options: Unpack[_Options],\n    ) -> None: ...\n")


def properties():
    for name, value in vars(weir.Average).items():
        if isinstance(value, property):
            kind = "str" if name == "name" or name.endswith("_str") else "int" if "memory" in name else "float"
            yield f"    @property\n    def {name}(self) -> {kind}: ...\n"


def main(template, stub):
    with open(template, encoding="utf-8") as file:
        text = file.read()
    for name, lines in ("OPTIONS", options()), ("OVERLOADS", overloads()), ("PROPERTIES", properties()):
        text = text.replace(f"    ... # {name}\n", "".join(lines))
    with open(stub + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(stub + ".new", stub)


main(*sys.argv[1:])
