"""Which files a Python file needs from this project, read from its syntax tree without running it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "passerelle"


def module_name(path: Path) -> str:
    """`src/passerelle/data/plan.py` -> `passerelle.data.plan`; a package's name for its `__init__.py`."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported_names(path: Path) -> set[str]:
    """Every dotted name that the file imports, inside functions too, but not for type checking alone.

    `from a.b import c` counts as `a.b` and `a.b.c`, since `c` may be a module.
    """
    names: set[str] = set()
    for node in run_nodes(syntax_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full, from passerelle"
            names.add(str(node.module))
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below `node`, except what stands under `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from run_nodes(child)


def packages(path: Path) -> set[str]:
    """Names of the top-level packages that the file imports: `torch`, `ray`, `passerelle`, ..."""
    return {name.split(".")[0] for name in imported_names(path)}


def own_imports(path: Path) -> set[Path]:
    """Files of `src/passerelle` that the file imports, without `__init__.py` (they hold docstrings alone)."""
    found = set()
    for name in imported_names(path):
        module = SOURCE.joinpath(*name.split(".")).with_suffix(".py")
        if name.startswith("passerelle.") and module.is_file():
            found.add(module)
    return found


def named_files(path: Path) -> set[Path]:
    """Files beside a module that a string in it names: a bundled table, a script that a library runs."""
    strings = {
        node.value
        for node in run_nodes(syntax_tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value
    }
    return {neighbour for neighbour in path.parent.iterdir() if neighbour.name in strings}


def import_closure(script: Path) -> set[Path]:
    """All files of `src/passerelle` that running the script can read, sooner or later."""
    closure: set[Path] = set()
    waiting = own_imports(script)
    while waiting:
        path = waiting.pop()
        closure.add(path)
        if path.suffix == ".py":
            waiting |= (own_imports(path) | named_files(path)) - closure
    return closure
