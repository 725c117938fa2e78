"""Run the Python snippets of a document, in order, as one program, in the current folder.

A `text` block behind a snippet is what the snippet prints, and is held to it. Pictures that snippets save are
those that the document shows; so this draws them anew:
    cd docs/images/attention && python ../../run_snippets.py ../../attention.md
"""

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

SNIPPET = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run_snippets(document: Path) -> int:
    """Run them all; return how many there are. Raises ValueError where one prints something else."""
    text = document.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "snippets"}
    snippets = list(SNIPPET.finditer(text))
    for snippet in snippets:
        line = text.count("\n", 0, snippet.start(1)) + 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + snippet[1], str(document), "exec"), names)
        if printed.getvalue() != (snippet[2] or ""):
            raise ValueError(f"{document}:{line}: the snippet prints\n{printed.getvalue()}")
    return len(snippets)


if __name__ == "__main__":
    print(f"{run_snippets(Path(sys.argv[1]))} snippets ran")
