"""Small faults put into a module's syntax tree, one at a time: what `mutation.py` runs the tests against.

Comparisons, `and` and `or`, arithmetic, numbers, strings and conditions are changed; `not` is taken away;
statements are deleted. Default values of arguments are changed as constants. Left alone is what does not
decide anything: docstrings, annotations, decorators, `__all__`, the words of errors, and what stands under
`TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_EFFECTS = (ast.AugAssign, ast.Break, ast.Continue, ast.Delete, ast.Raise)
_Named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Mutant(NamedTuple):
    """One change of one file. Its name holds no line number: other changes of the file leave it as it is."""

    path: str
    where: str
    before: str
    after: str
    occurrence: int
    line: int
    node: ast.AST
    replacement: ast.AST

    @property
    def name(self) -> str:
        """What names it among all mutants."""
        times = f" ({self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.path}:{self.where}: {self.before} -> {self.after}{times}"

    def source(self, tree: ast.Module) -> str:
        """The text of the changed module; spoils `tree`, in which the mutant was found."""
        return ast.unparse(ast.fix_missing_locations(_Replace(self.node, self.replacement).visit(tree)))


def mutants(path: str, tree: ast.Module) -> list[Mutant]:
    """All mutants of a module, in order of their places."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for where, node in _places(tree, ()):
        for replacement in _replacements(node):
            change = where, _in_words(node), _in_words(replacement)
            seen[change] += 1
            found.append(Mutant(path, *change, seen[change], getattr(node, "lineno", 0), node, replacement))
    return found


def sample(found: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """The `size` mutants whose names have the lowest digests.

    Each mutant has the same chance, and changes of the code leave the others in the sample.
    """
    return sorted(found, key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).digest())[:size]


def read(root: Path, path: str) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse((root / path).read_text("utf-8"), path)


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, replacement: ast.AST) -> None:
        self.node, self.replacement = node, replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self.replacement if node is self.node else self.generic_visit(node)


def _places(node: ast.AST, within: tuple[str, ...]) -> Iterator[tuple[str, ast.AST]]:
    """Nodes that may be changed, with the name of the function or class that they stand in."""
    for field, value in ast.iter_fields(node):
        if _is_left_alone(node, field):
            continue
        for child in value if isinstance(value, list) else (value,):
            if not isinstance(child, ast.AST) or _is_docstring(child) or _is_no_decision(child):
                continue
            inner = (*within, child.name) if isinstance(child, _Named) else within
            yield ".".join(inner), child
            yield from _places(child, inner)


def _is_left_alone(node: ast.AST, field: str) -> bool:
    """Whether the field decides nothing: types, decorators, an error's words, the bases of a class."""
    if isinstance(node, ast.Raise) or (isinstance(node, ast.ClassDef) and field == "bases"):
        return True
    return field in {"annotation", "returns", "decorator_list"}


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_no_decision(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec" | "NewType"))):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.BitOr()) | ast.Subscript()):
            return name.strip("_")[:1].isupper() and not name.isupper()  # an alias: `Route = Rest | GraphQL`
    return False


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for index, operation in enumerate(ops):
                for other in COMPARISONS[type(operation)]:
                    yield ast.Compare(left, [*ops[:index], other(), *ops[index + 1 :]], others)
        case ast.BoolOp(op=operation, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(operation, ast.And) else ast.And(), values)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in ARITHMETIC:
            yield ast.BinOp(left, ARITHMETIC[type(operation)](), right)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=value):
            yield from (ast.Constant(other) for other in _other_values(value))
        case ast.IfExp(test=test, body=body, orelse=other):
            yield ast.IfExp(_negated(test), body, other)
        case ast.If(test=test, body=body, orelse=other):
            yield ast.If(_negated(test), body, other)
        case ast.While(test=test, body=body, orelse=other):
            yield ast.While(_negated(test), body, other)
        case ast.comprehension(target=target, iter=source, ifs=tests, is_async=is_async):
            for index, test in enumerate(tests):
                others = [*tests[:index], _negated(test), *tests[index + 1 :]]
                yield ast.comprehension(target, source, others, is_async)
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    if _has_effect(node):
        yield ast.Pass()


def _has_effect(node: ast.AST) -> bool:
    """Whether something else than a missing name follows, as a rule, where the statement is missing."""
    match node:
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
        case ast.Return(value=ast.Constant(value=None | False)):
            return False  # mostly what comes without it, at the end of a function
        case ast.Return() | ast.Expr(value=ast.Call() | ast.Await()):
            return True
    return isinstance(node, _EFFECTS)


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


def _other_values(value: object) -> tuple[bool | int | float | str, ...]:
    match value:
        case bool():
            return (not value,)
        case int():
            return value + 1, value - 1
        case float():
            return (value * 1.5, value * 0.5) if value else (1.0,)
        case str():
            return ("" if value else "mutant",)
    return ()


def _in_words(node: ast.AST) -> str:
    """The code on one line of at most 160 characters, of a condition without what depends on it."""
    match node:
        case ast.If(test=test):
            return f"if {ast.unparse(test)}"
        case ast.While(test=test):
            return f"while {ast.unparse(test)}"
    line = " ".join(ast.unparse(node).split())
    return line if len(line) <= 160 else f"{line[:140]}… {hashlib.sha256(line.encode()).hexdigest()[:8]}"
