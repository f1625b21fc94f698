"""The laws of the house, read off the source tree; docs/design.md states them in words.

What counts as an import: every ``import`` statement wherever it stands, and ``import_module`` with
a literal name, but not what only a type checker sees (``if TYPE_CHECKING``).
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import legato_rt
from tests.helpers.layers import DEVICES_MAY_IMPORT, FACE_AND, ROWS, TOP

ROOT = Path(__file__).resolve().parents[2]
TREES = ("legato_rt", "kernels", "devices", "apps", "bench", "tests")
LINKED = ("kernels", "devices")  # packaged inside legato_rt, kept at the top of the tree

# The scheduler decides alike on threads, on a cluster and in virtual time only if it is pure.
PURE = ("scheduler", "order", "policy", "costs", "draws", "site", "objective")
IMPURE = {"asyncio", "concurrent", "multiprocessing", "queue", "socket", "threading"}
IMPURE |= {"datetime", "random", "secrets", "time"}

HEAVY = {"bokeh", "cupy", "distributed", "numba", "pynvml", "pyopencl"}

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
# "path" and "path:qualified.name", each with the reason why it may be longer.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {
    "legato_rt/executor/base.py:Executor.run": "the hot path: a call costs as much as ten lines",
    "legato_rt/scheduler.py:Scheduler._over": "the hot path: a call costs as much as ten lines",
    "legato_rt/runtime.py:Runtime.submit": "the hot path: a call costs as much as ten lines",
}


@dataclass(frozen=True)
class Module:
    """A source file, its place in the tree and the dotted name it is imported under."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def where(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Import:
    """One imported module; for ``from base import name`` also these two."""

    module: str
    line: int
    base: str = ""
    name: str = ""


def sources(tree: str) -> list[Path]:
    """Return a tree's own files; rglob does not follow the links legato_rt/{kernels,devices}."""
    return sorted(
        path
        for path in (ROOT / tree).rglob("*.py")
        if not (tree == "legato_rt" and path.relative_to(ROOT / tree).parts[0] in LINKED)
    )


@cache
def modules(tree: str) -> tuple[Module, ...]:
    found = []
    for path in sources(tree):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        name = ".".join(("legato_rt", *parts) if tree in LINKED else parts)
        found.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(found)


@cache
def module_names() -> frozenset[str]:
    return frozenset(module.name for tree in TREES for module in modules(tree))


def executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node but those that only a type checker reads."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack.extend(node.orelse)
        else:
            stack.extend(ast.iter_child_nodes(node))


def from_base(module: Module, node: ast.ImportFrom) -> str:
    """Return the absolute name of the package that ``from … import`` reads from."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    if module.path.name != "__init__.py":
        parts = parts[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def imports(module: Module) -> Iterator[Import]:
    for node in executed(module.tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = from_base(module, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                module_itself = inner if inner in module_names() else base
                yield Import(module_itself, node.lineno, base, alias.name)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
            yield from (Import(str(name), node.lineno) for name in names)


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def short(name: str) -> str:
    """Return a module's name within legato_rt."""
    return name.removeprefix("legato_rt").removeprefix(".")


def member(name: str) -> str | None:
    """Return the entry of the table under which a module of legato_rt stands."""
    entries = [entry for row in (*ROWS, TOP) for entry in row]
    fits = [entry for entry in entries if name == entry or (entry and inside(name, entry))]
    return max(fits, key=len, default=None)


@cache
def table() -> nx.DiGraph:
    """Return the table as a graph: from each entry to every entry that it may import."""
    graph = nx.DiGraph()
    for row, below in ROWS.items():
        graph.add_edges_from((row, row_of(entry)) for entry in below)
        graph.add_node(row)
    graph.add_edges_from((TOP, row) for row in ROWS)
    return graph


def row_of(name: str) -> tuple[str, ...] | None:
    entry = member(name)
    return next((row for row in (*ROWS, TOP) if entry in row), None)


def test_walk_finds_every_tree() -> None:
    assert [tree for tree in TREES if not modules(tree)] == []
    assert "legato_rt" in module_names()
    assert "legato_rt.kernels" in module_names()


def test_table_has_no_cycle() -> None:
    assert nx.is_directed_acyclic_graph(table())


def test_every_module_stands_in_the_table() -> None:
    assert [m.where for m in modules("legato_rt") if row_of(short(m.name)) is None] == []


def test_no_upward_import() -> None:
    upward = []
    for module in modules("legato_rt"):
        row = row_of(short(module.name))
        allowed = {row, *nx.descendants(table(), row)} if row else set()
        upward += [
            f"{module.where}:{found.line} imports {found.module}"
            for found in imports(module)
            if inside(found.module, "legato_rt") and row_of(short(found.module)) not in allowed
        ]
    assert upward == []


def test_no_import_cycle() -> None:
    graph = nx.DiGraph()
    for module in (m for tree in ("legato_rt", *LINKED) for m in modules(tree)):
        targets = [found.module for found in imports(module)]
        graph.add_edges_from((module.name, name) for name in targets if name in module_names())
    assert graph.number_of_edges() > 0
    knots = [knot for knot in nx.strongly_connected_components(graph) if len(knot) > 1]
    assert knots + list(nx.selfloop_edges(graph)) == []


def test_legato_rt_never_imports_what_enters_by_entry_points() -> None:
    outside = ("legato_rt.kernels", "legato_rt.devices", "kernels", "devices", "apps", "bench")
    wrong = [
        f"{module.where}:{found.line} imports {found.module}"
        for module in modules("legato_rt")
        for found in imports(module)
        if any(inside(found.module, package) for package in outside)
    ]
    assert wrong == []


def test_devices_import_only_the_contract_of_a_back_end() -> None:
    wrong = [
        f"{module.where}:{found.line} imports {found.module}"
        for module in modules("devices")
        for found in imports(module)
        if inside(found.module, "legato_rt")
        and not inside(found.module, "legato_rt.devices")
        and short(found.module) not in DEVICES_MAY_IMPORT
    ]
    assert wrong == []


def beyond_the_face(module: Module, own: tuple[str, ...]) -> Iterator[str]:
    """Yield what a module takes from legato_rt that the public face does not offer."""
    face = {*legato_rt.__all__, "__version__"}
    for found in imports(module):
        if any(inside(found.module, package) for package in own):
            continue
        # A name of the face may also be a module's, such as task.
        on_face = found.name in face if found.base == "legato_rt" else found.module == "legato_rt"
        if inside(found.module, "legato_rt") and not on_face:
            yield f"{module.where}:{found.line} imports {found.module} {found.name}"
    aliases = {
        alias.asname or alias.name
        for node in executed(module.tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "legato_rt"
    }
    for node in executed(module.tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id in aliases and node.attr not in {*face, "kernels"}:
            yield f"{module.where}:{node.lineno} uses {node.value.id}.{node.attr}"


@pytest.mark.parametrize("tree", FACE_AND)
def test_only_the_public_face_is_used_by(tree: str) -> None:
    package = f"legato_rt.{tree}" if tree in LINKED else tree
    own = (package, *FACE_AND[tree])
    assert [wrong for module in modules(tree) for wrong in beyond_the_face(module, own)] == []


def test_deciding_modules_are_pure() -> None:
    pure = [m for m in modules("legato_rt") if any(inside(short(m.name), p) for p in PURE)]
    wrong = [
        f"{module.where}:{found.line} imports {found.module}"
        for module in pure
        for found in imports(module)
        if found.module.partition(".")[0] in IMPURE
    ]
    assert pure != []
    assert wrong == []


def test_import_loads_nothing_heavy(tmp_path: Path) -> None:
    """Record every module that is asked for, so that an absent package is seen to be wanted too."""
    probe = (
        "import sys\n"
        "class Asked:\n"
        "    names = set(sys.modules)\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        self.names.add(name)\n"
        "sys.meta_path.insert(0, Asked())\n"
        "import legato_rt\n"
        "print(*{name.partition('.')[0] for name in Asked.names})\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    asked = set(run.stdout.split())
    assert "legato_rt" in asked
    assert asked & HEAVY == set()


def test_all_names_what_the_package_offers() -> None:
    names = legato_rt.__all__
    assert len(set(names)) == len(names) > 0
    assert [name for name in names if not hasattr(legato_rt, name)] == []


@pytest.mark.parametrize("name", LINKED)
def test_short_name_is_refused(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode != 0
    assert f"write `import legato_rt.{name}`, not `import {name}`" in run.stderr


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("statement", ["import {}", "from {} import gemm", "import {}.gemm"])
def test_lint_bans_the_short_name(name: str, statement: str) -> None:
    ruff = [sys.executable, "-m", "ruff", "check", "--select", "TID", "--stdin-filename", "x.py"]
    code = {
        prefix: subprocess.run(
            [*ruff, "-"],
            input=statement.format(prefix + name) + "\n",
            cwd=ROOT,
            text=True,
            capture_output=True,
        ).returncode
        for prefix in ("", "legato_rt.")
    }
    assert code == {"": 1, "legato_rt.": 0}


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield each function's qualified name and its length in lines, docstring included."""
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{child.name}."
            if not isinstance(child, ast.ClassDef):
                yield inner.rstrip("."), (child.end_lineno or 0) - child.lineno + 1
        yield from functions(child, inner)


def assert_only_allowed(over: set[str], allowed: dict[str, str]) -> None:
    assert sorted(over - allowed.keys()) == []
    assert sorted(allowed.keys() - over) == [], "no longer too long: take it off the list"
    assert all(reason.strip() for reason in allowed.values())


def test_files_are_short() -> None:
    lengths = {
        module.where: len(module.path.read_text(encoding="utf-8").splitlines())
        for tree in TREES
        for module in modules(tree)
    }
    over = {where for where, lines in lengths.items() if lines >= MAX_FILE_LINES}
    assert_only_allowed(over, LONG_FILES)


def test_functions_are_short() -> None:
    lengths = {
        f"{module.where}:{name}": lines
        for tree in TREES
        for module in modules(tree)
        for name, lines in functions(module.tree)
    }
    assert lengths
    over = {where for where, lines in lengths.items() if lines >= MAX_FUNCTION_LINES}
    assert_only_allowed(over, LONG_FUNCTIONS)
