"""The documents tell the truth: snippets run, pictures are those that they draw, and links lead somewhere."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest

from source_imports import ROOT

GUIDE = ROOT / "docs/attention.md"
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT, capture_output=True, text=True, check=True,
).stdout.split()  # fmt: skip


def test_the_snippets_of_the_guide_run_and_draw_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert runpy.run_path(str(ROOT / "docs/run_snippets.py"))["run_snippets"](GUIDE) > 10
    shown = set(re.findall(r"\]\(images/attention/([^)]+)\)", GUIDE.read_text(encoding="utf-8")))
    assert shown == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("document", TRACKED)
def test_a_link_to_a_file_finds_it(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (ROOT / document).parent.joinpath(target).exists(), target
