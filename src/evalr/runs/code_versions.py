"""A version for a function that has none: a hash of what its code says, the same in every process."""

from __future__ import annotations

import ast
import io
import linecache
import tokenize
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from types import CodeType, FunctionType, MethodType
from typing import Any

PLAIN = (str, bytes, int, float, bool, complex, type(None))


def code_version(function: Callable[..., Any]) -> str:
    """`code:` and 12 digits that change with a function's code and with the plain values that it uses.

        judge = FunctionEvaluator("completion", code_version(ask), ask, Transcript, TaskCompletion)

    Functions of the same module that it calls are looked into, and so are texts and numbers that it reads from its
    module, its closure or its object. Other modules and other objects are not, such as a client, a model behind an API
    or a prompt in a file: what they do needs a version of its own.

    Code is its source, without comments and layout, so that each Python has the same version for it. Where that cannot
    be had, or is not what runs (it was edited since), and for a lambda, of which a line may have several, it is the
    bytecode, which is another one in another minor version of Python.
    """
    spelled = "\n".join(_parts(function, set()))
    return f"code:{blake2b(spelled.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def _parts(thing: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(thing, PLAIN):
        yield repr(thing)
    elif isinstance(thing, tuple | list):
        yield f"{len(thing)} parts"
        for each in thing:
            yield from _parts(each, seen)
    elif isinstance(thing, frozenset | set):
        yield from sorted("\n".join(_parts(each, seen)) for each in thing)
    elif isinstance(thing, dict):
        for name, value in thing.items():
            yield from _parts((str(name), value), seen)
    elif id(thing) in seen:
        return
    else:
        seen.add(id(thing))
        yield from _of_callable(thing, seen)


def _of_callable(thing: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(thing, FunctionType):
        source = _source(thing)
        yield from _code(thing.__code__, seen) if source is None else _tokens(source)
        for value in _used(thing):
            yield from _parts(value, seen)
    elif isinstance(thing, MethodType):
        yield from _parts((thing.__func__, thing.__self__), seen)
    elif isinstance(thing, partial):
        yield from _parts((thing.func, thing.args, thing.keywords), seen)
    else:
        kind = thing if isinstance(thing, type) else type(thing)
        yield f"{kind.__module__}.{kind.__qualname__}"
        called = getattr(kind, "__call__", None)  # noqa: B004  its code is wanted
        if isinstance(called, FunctionType):
            yield from _parts((called, {k: v for k, v in vars(thing).items() if isinstance(v, PLAIN)}), seen)


def _source(function: FunctionType) -> str | None:
    """What the file says of a function; None where that is not what runs."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    try:
        module = compile(text, code.co_filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        tree = compile(
            text, code.co_filename, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
    except (SyntaxError, ValueError):
        return None
    if all(each != code for each in _codes(module)):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return ast.get_source_segment(text, node)
    return None


def _tokens(source: str) -> Iterator[str]:
    """Each word and sign of a source, and where blocks begin and end. Each Python finds the same ones."""
    lines = source.splitlines(keepends=True)
    start = getattr(tokenize, "FSTRING_START", None)  # before Python 3.12 an f-string is one token, as it is here
    end = getattr(tokenize, "FSTRING_END", None)
    open_at: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == start:
            open_at.append(token.start)
        elif token.type == end:
            begun = open_at.pop()
            if not open_at:
                yield _between(lines, begun, token.end)
        elif open_at or token.type in (tokenize.COMMENT, tokenize.NL):
            continue
        elif token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            yield tokenize.tok_name[token.type]
        else:
            yield token.string


def _between(lines: list[str], begun: tuple[int, int], ended: tuple[int, int]) -> str:
    (first, left), (last, right) = begun, ended
    if first == last:
        return lines[first - 1][left:right]
    return "".join([lines[first - 1][left:], *lines[first : last - 1], lines[last - 1][:right]])


def _code(code: CodeType, seen: set[int]) -> Iterator[str]:
    # Neither the file nor the line it stands on: that something was written above it changes nothing.
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, seen)
        else:
            yield from _parts(constant, seen)


def _used(function: FunctionType) -> Iterator[Any]:
    """What a function holds, and what it reads from its module, as far as that says what it does."""
    yield function.__defaults__ or ()
    yield function.__kwdefaults__ or {}
    held = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    held += [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    for value in held:
        own = isinstance(value, FunctionType) and value.__module__ == function.__module__
        if own or isinstance(value, PLAIN):
            yield value


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # nothing was put there yet
        return False
