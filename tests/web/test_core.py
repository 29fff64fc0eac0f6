# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of web/core under node, the types under tsc where it is installed, and a few rules by reading the sources."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "web"
SOURCES = sorted(WEB.rglob("*.js"))


def test_core_passes_its_node_tests() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine: apt-get install nodejs")
    files = sorted(str(file) for file in (HERE / "core").glob("*.test.mjs"))
    run = subprocess.run([node, "--test", *files], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


def test_types_hold() -> None:
    installed = Path(sys.prefix) / "node" / "node_modules" / ".bin"
    tsc = shutil.which("tsc", path=f"{installed}{os.pathsep}{os.environ.get('PATH', '')}")
    assert tsc is not None, "no tsc on this machine: make test installs it"
    run = subprocess.run([tsc, "-p", str(WEB / "jsconfig.json")], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout


def test_every_core_module_has_a_test() -> None:
    tested = {file.name.removesuffix(".test.mjs") for file in (HERE / "core").glob("*.test.mjs")}
    assert {file.stem for file in (WEB / "core").glob("*.js")} == tested


@pytest.mark.parametrize("source", SOURCES, ids=lambda file: str(file.relative_to(WEB)))
def test_source_keeps_the_rules(source: Path) -> None:
    text = source.read_text()
    lines = text.splitlines()
    assert lines[0] == "// SPDX-License-Identifier: Apache-2.0"
    assert lines[1].startswith("/**")
    assert len(lines) <= 400
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*\.js", source.name)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\s*[\"']style", text)
    if source.parent.name == "core":
        assert not re.search(r"\b(document|localStorage|location|fetch)\b[.(]", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL))


def test_page_holds_no_script_or_style_inline() -> None:
    text = (WEB / "index.html").read_text()
    assert re.findall(r"<script[^>]*>", text) == ['<script type="module" src="/assets/main.js">']
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|https?://", text)


def test_pictures_are_well_formed_and_no_entity_is_one_of_html_alone() -> None:
    pictures = list(WEB.rglob("*.svg"))
    assert pictures
    for picture in pictures:
        ElementTree.parse(picture)
    for file in [*pictures, *SOURCES]:
        assert not re.search(r"&(?!amp;|lt;|gt;|quot;|apos;|#)[a-zA-Z]+;", file.read_text()), file


def test_only_the_tokens_name_colours() -> None:
    for sheet in set(WEB.glob("*.css")) - {WEB / "tokens.css"}:
        assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", sheet.read_text()), sheet
