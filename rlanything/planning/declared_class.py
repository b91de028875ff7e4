"""A class of the project as its source declares it. Importing an engine imports torch and transformers, which takes
seconds; to check the names of its arguments, its source is enough.
"""

from __future__ import annotations

import ast
from inspect import Parameter, Signature
from pathlib import Path

import rlanything

TOP = Path(rlanything.__file__).parent


def declared_class(target: str, of: type) -> type | None:
    """A class with the constructor's signature and the methods of the class `target`, a dotted name.

    It can be asked what it takes and has, and nothing else. None where the source alone does not say it: a class of
    another package, with a base, a decorator or without a constructor, or without a member of the protocol `of`."""
    module, _, name = target.rpartition(".")
    file = TOP.joinpath(*module.split(".")[1:]).with_suffix(".py")
    if module.partition(".")[0] != TOP.name or not file.is_file():
        return None
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == name and not (node.bases or node.decorator_list):
            return _made(node, module, of)
    return None


def _made(node: ast.ClassDef, module: str, of: type) -> type | None:
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    wanted = {member for member in vars(of) if not member.startswith("_")}
    if "__init__" not in methods or not wanted <= set(methods):
        return None
    body = {name: None for name in methods if not name.startswith("_")}
    signature = _signature(methods["__init__"].args)
    return type(node.name, (), {**body, "__module__": module, "__signature__": signature})


def _signature(arguments: ast.arguments) -> Signature:
    """The signature without `self`. Defaults and annotations are left out."""
    plain = [*arguments.posonlyargs, *arguments.args][1:]
    found = [Parameter(arg.arg, Parameter.POSITIONAL_OR_KEYWORD) for arg in plain]
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL))
    found += [Parameter(arg.arg, Parameter.KEYWORD_ONLY) for arg in arguments.kwonlyargs]
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(found)
