"""A clock that jumps, back or ahead, changes no decision: only dates for people are taken from it.

What waits or measures takes the monotonic clock; which checkpoint is newest is in its name, not its file's date.
"""

import ast

from source_imports import PACKAGE, ROOT, run_nodes, syntax_tree

OF_TIME = {"time", "time_ns", "gmtime", "localtime", "ctime", "strftime", "clock_gettime", "CLOCK_REALTIME"}
OF_DATES = {"now", "today", "utcnow", "fromtimestamp"}
OF_FILES = {"st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "getmtime", "getctime", "utime"}
DATES = {
    "lineage.py": {"datetime.now"},  # when it was evaluated
    "run_log.py": {"time.time"},  # MLflow's rows are dated
    "tracking_address.py": {"time.time"},  # and its runs
}


def uses_of_the_clock(tree: ast.AST) -> set[str]:
    """Each use of a clock that can be set, as it is written."""
    found = set()
    for node in run_nodes(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).split(".")[-1]
            is_time, is_date = owner == "time" and node.attr in OF_TIME, owner in ("datetime", "date")
            if is_time or (is_date and node.attr in OF_DATES) or node.attr in OF_FILES:
                found.add(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found |= {f"time.{alias.name}" for alias in node.names if alias.name in OF_TIME}
    return found


def test_only_dates_are_taken_from_the_clock() -> None:
    files = [
        path for place in ("src", "pipeline", "examples") for path in sorted((ROOT / place).rglob("*.py"))
    ]
    uses = {path: uses_of_the_clock(syntax_tree(path)) for path in files}
    assert {path.relative_to(PACKAGE).as_posix(): found for path, found in uses.items() if found} == DATES


def test_no_use_of_the_clock_is_overlooked() -> None:
    lines = [
        "import time; time.time()",
        "from time import time",
        "import datetime; datetime.datetime.now()",
        "from datetime import datetime, UTC; datetime.now(UTC)",
        "max(paths, key=lambda path: path.stat().st_mtime)",
        "import os; os.path.getmtime(path)",
    ]
    assert all(uses_of_the_clock(ast.parse(line)) for line in lines)
    assert not uses_of_the_clock(ast.parse("import time; time.monotonic() - time.perf_counter()"))
