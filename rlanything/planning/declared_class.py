"""A class of the project as its source declares it. Importing an engine imports torch and transformers, which takes
seconds; to check the names of its arguments, its source is enough.
"""

from __future__ import annotations

import ast
from inspect import Parameter, Signature
from pathlib import Path

import rlanything

TOP = Path(rlanything.__file__).parent
WITHOUT_METHODS = ("abc", "typing")
"""Modules of bases that give an engine no methods."""


def declared_class(target: str, of: type) -> type | None:
    """A class with the constructor's signature and the methods of the class `target`, a dotted name.

    It can be asked what it takes and has, and nothing else. None where the source alone does not say it: a class of
    another package, with a decorator, without a constructor, without a member of the protocol `of`, or with a base that
    is not in this package."""
    module, _, name = target.rpartition(".")
    found = _declared(module, name)
    if found is None or found[1].decorator_list:
        return None
    methods = _methods(*found)
    wanted = {member for member in vars(of) if not member.startswith("_")}
    if methods is None or "__init__" not in methods or not wanted <= set(methods):
        return None
    body = {method: None for method in methods if not method.startswith("_")}
    signature = _signature(methods["__init__"].args)
    return type(name, (), {**body, "__module__": module, "__signature__": signature})


def _declared(module: str, name: str) -> tuple[ast.Module, ast.ClassDef] | None:
    """The source of a module of this package, and a class in it."""
    file = TOP.joinpath(*module.split(".")[1:]).with_suffix(".py")
    if module.partition(".")[0] != TOP.name or not file.is_file():
        return None
    tree = ast.parse(file.read_text())
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return tree, node
    return None


def _methods(tree: ast.Module, node: ast.ClassDef) -> dict[str, ast.FunctionDef] | None:
    """The methods of a class by name, its own before those of its bases. None where a base cannot be read."""
    origins = {
        alias.asname or alias.name: (part.module or "", alias.name)
        for part in tree.body
        if isinstance(part, ast.ImportFrom)
        for alias in part.names
    }
    methods: dict[str, ast.FunctionDef] = {}
    for base in reversed(node.bases):
        named = base.value if isinstance(base, ast.Subscript) else base
        module, name = origins.get(named.id, ("", "")) if isinstance(named, ast.Name) else ("", "")
        if module in WITHOUT_METHODS:
            continue
        found = _declared(module, name)
        inherited = None if found is None else _methods(*found)
        if inherited is None:
            return None
        methods |= inherited
    return methods | {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}


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
