# SPDX-License-Identifier: Apache-2.0
"""Where .dwo and .dwp files are found, and that names get their inlined calls when they come."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality, SplitName
from server.symbols.builder import build_table
from server.symbols.desk import Remedy, Why, remedy_for_split, why_of
from server.symbols.identity import key_of
from server.symbols.ledger import NameState
from server.symbols.namer import NEWS_S, Namer
from server.symbols.settings import SymbolSettings
from server.symbols.source_files import SourceFiles
from server.symbols.split_files import SplitFiles
from server.symbols.split_ids import split_ids
from server.symbols.table import Traits
from server.symbols.table_cache import TableCache
from tests.server.symbols.conftest import Clock
from tests.server.symbols.programs import compile_program, describe, run_tool

WAIT_S = 300.0
SOURCE = "static inline int half(int x) { return x / 7; } int main(int c, char **v) { (void)v; return half(c); }"


class Built:
    """A program and its .dwo file, which is not where the program says."""

    def __init__(self, folder: Path) -> None:
        (folder / "build/bin").mkdir(parents=True)
        made = compile_program(SOURCE, folder / "gone.o", "-c", "-O1", "-gdwarf-4", "-gsplit-dwarf")
        self.folder, self.program = folder, folder / "build/bin/app"
        run_tool("gcc", "-o", self.program, made)
        self.file = (folder / "gone.dwo").rename(folder / "kept.dwo")
        descriptor = os.open(self.file, os.O_RDONLY)
        (self.dwo_id,) = split_ids(descriptor).tolist()
        os.close(descriptor)

    @property
    def binary(self) -> BinaryInfo:
        return describe(self.program)

    def put(self, place: str) -> None:
        (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.file, self.folder / place)


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return Built(tmp_path)


@pytest.fixture
def namer(built: Built, clock: Clock) -> Iterator[Namer]:
    namer = Namer(SymbolSettings(built.folder / "symbols", debug_roots=(built.folder / "root",), free_min_bytes=0), clock)
    yield namer
    namer.close()


def quality(namer: Namer, binary: BinaryInfo) -> Quality:
    namer.state(binary)
    assert namer.wait_idle(WAIT_S)
    state = namer.state(binary)
    assert state.state == NameState.NAMED
    return state.quality


PLACES = [
    ("build/bin/gone.dwo", "obj/gone.dwo"),  # Beside the binary, whatever folder it was made in.
    ("build/bin/obj/gone.dwo", "bin/obj/gone.dwo"),  # Below the binary's folder.
    ("build/obj/gone.dwo", "obj/gone.dwo"),  # Below the folder of the build, in which the binary is.
    ("root/PLACE/build/obj/gone.dwo", "obj/gone.dwo"),  # In a configured root.
    ("build/bin/app.dwp", "obj/gone.dwo"),  # Packed, beside the binary.
    ("root/PLACE/build/bin/app.dwp", "obj/gone.dwo"),
    ("root/.build-id/ID.dwp", "obj/gone.dwo"),
]


@pytest.mark.parametrize(("place", "name"), PLACES)
def test_places_that_are_looked_at(built: Built, place: str, name: str) -> None:
    settings = SymbolSettings(built.folder / "symbols", debug_roots=(built.folder / "root",), free_min_bytes=0)
    files = SplitFiles(settings, SourceFiles(settings.directory, 1 << 30, 0))
    key, missing = key_of(built.binary), [SplitName(built.dwo_id, name.encode(), os.fsencode(built.folder / "build"))]
    assert files.bundle(key, built.binary, missing) is None
    digits = key.build_id.hex()
    built.put(place.replace("PLACE", str(built.folder)[1:]).replace("ID", f"{digits[:2]}/{digits[2:]}"))
    bundle = files.bundle(key, built.binary, missing)
    assert bundle is not None
    assert bundle.sizes == (built.file.stat().st_size,)
    assert os.pread(bundle.descriptor, 1 << 20, 0) == built.file.read_bytes()
    os.close(bundle.descriptor)
    other = [replace(missing[0], dwo_id=built.dwo_id ^ 7)]
    assert files.bundle(key, built.binary, other) is None


def test_a_name_that_leads_out_of_the_folders_is_not_followed(built: Built) -> None:
    settings = SymbolSettings(built.folder / "symbols", debug_roots=(built.folder / "root",), free_min_bytes=0)
    files = SplitFiles(settings, SourceFiles(settings.directory, 1 << 30, 0))
    for name in (str(built.file), "../../kept.dwo", "bin/../../kept.dwo"):
        missing = [SplitName(built.dwo_id, name.encode(), os.fsencode(built.folder / "build"))]
        assert files.bundle(key_of(built.binary), built.binary, missing) is None


def test_a_file_that_comes_later_is_found(built: Built, namer: Namer, clock: Clock) -> None:
    binary = built.binary
    assert quality(namer, binary) == Quality.FULL
    [attempt] = [one for one in namer.record(binary).attempts if one.origin == "split"]
    assert (attempt.outcome, attempt.reason) == ("not-found", "parts of the debug data are in files that are not here: gone.dwo")
    built.put("build/bin/gone.dwo")
    clock.now_s += NEWS_S + 1
    namer.tend()
    assert quality(namer, binary) == Quality.DWARF
    assert [one.outcome for one in namer.record(binary).attempts if one.origin == "split"] == ["ok"]


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_that_is_uploaded_names_what_runs(built: Built, namer: Namer, is_packed: bool) -> None:
    binary = built.binary
    assert quality(namer, binary) == Quality.FULL
    state, record = namer.state(binary), namer.record(binary)
    assert why_of(binary, state, record) == Why.NO_DEBUG_DATA
    assert remedy_for_split(binary, record) == Remedy(
        "Its inlined calls are in .dwo files. Upload those, or what dwp -e makes of them.", "emberwatch symbols upload app.dwp"
    )
    file = built.file
    if is_packed:
        file = built.folder / "packed.dwp"
        run_tool("dwp", built.file, "-o", file)
    with file.open("rb") as opened:
        taken = namer.take_file(opened.fileno())
    assert (taken.build_id, taken.binaries) == ("", 1)
    assert quality(namer, binary) == Quality.DWARF


def test_a_packed_file_that_is_uploaded_first_is_found_by_each_of_its_units(built: Built) -> None:
    """Also after a restart; two packed files that share a unit are both kept."""
    settings = SymbolSettings(built.folder / "symbols", debug_roots=(), free_min_bytes=0)
    first = Namer(settings)
    packed = []
    for name in ("other", "third"):
        source = f"int {name}(int x) {{ return x * 23; }}"
        compile_program(source, built.folder / f"{name}.o", "-c", "-O1", "-gdwarf-4", "-gsplit-dwarf")
        packed.append(built.folder / f"{name}.dwp")
        run_tool("dwp", built.file, built.folder / f"{name}.dwo", "-o", packed[-1])
        with packed[-1].open("rb") as opened:
            assert first.take_file(opened.fileno()).binaries == 0
    first.close()
    files = SplitFiles(settings, SourceFiles(settings.directory, 1 << 30, 0))
    for path in packed:
        with path.with_suffix(".dwo").open("rb") as opened:
            (dwo_id,) = split_ids(opened.fileno()).tolist()
        bundle = files.bundle(key_of(built.binary), None, [SplitName(dwo_id, b"x.dwo", b"/")])
        assert bundle is not None and os.pread(bundle.descriptor, 1 << 20, 0) == path.read_bytes()
        os.close(bundle.descriptor)
    again = Namer(settings)
    assert quality(again, built.binary) == Quality.DWARF
    again.close()


def test_a_file_that_is_uploaded_first_waits_for_its_program(built: Built, namer: Namer) -> None:
    with built.file.open("rb") as opened:
        assert namer.take_file(opened.fileno()).binaries == 0
    assert quality(namer, built.binary) == Quality.DWARF


def debug_bytes(program: Path) -> int:
    """Of all debug sections."""
    return sum(
        int(size, 16) for size in re.findall(r"\.debug_\w+ +\w+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", run_tool("readelf", "-SW", program))
    )


def test_split_data_that_is_too_big_leaves_lines_where_they_are(built: Built, namer: Namer, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from server.symbols import build_child, elf_parts; "
    code += f"elf_parts.MAX_INFLATED_BYTES = {debug_bytes(built.program)}; build_child.main()"
    monkeypatch.setattr("server.symbols.workshop.build_table", partial(build_table, command=(sys.executable, "-P", "-c", code)))
    binary = built.binary
    assert quality(namer, binary) == Quality.FULL
    with built.file.open("rb") as opened:
        assert namer.take_file(opened.fileno()).binaries == 1
    assert quality(namer, binary) == Quality.FULL
    [attempt] = [one for one in namer.record(binary).attempts if one.origin == "split"]
    assert attempt.outcome == "limit" and attempt.reason.startswith("limit: section .debug_")
    again = TableCache(built.folder / "symbols", 1 << 30).get(key_of(binary))
    assert again is not None and again.inlines is not None
    assert again.facts.traits & Traits.SPLIT
    with built.file.open("rb") as opened:  # Still known to be missing.
        assert namer.take_file(opened.fileno()).binaries == 1


def splits_of(built: Built) -> SplitFiles:
    settings = SymbolSettings(built.folder / "symbols", debug_roots=(), free_min_bytes=0)
    return SplitFiles(settings, SourceFiles(settings.directory, 1 << 30, 0))


@pytest.mark.parametrize("bound", ["MAX_FILES", "MAX_BYTES", "room"])
def test_what_is_left_out_is_no_news(built: Built, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    built.put("build/bin/gone.dwo")
    files, key, missing = splits_of(built), key_of(built.binary), [SplitName(built.dwo_id, b"gone.dwo", b"/")]
    files.note(key, missing, missing)
    assert files.has_news(key, built.binary)
    if bound == "room":
        monkeypatch.setattr("server.symbols.split_files.refusal_for_room", lambda *_: "no room")
    else:
        monkeypatch.setattr(f"server.symbols.split_files.{bound}", 0)
    assert files.bundle(key, built.binary, missing) is None
    files.note(key, missing, missing)
    assert not files.has_news(key, built.binary)


def test_units_that_were_never_asked_for_are_no_news(built: Built) -> None:
    built.put("build/bin/gone.dwo")
    files, key = splits_of(built), key_of(built.binary)
    first, behind = SplitName(built.dwo_id ^ 7, b"other.dwo", b"/"), SplitName(built.dwo_id, b"gone.dwo", b"/")
    files.note(key, [behind], [first])
    assert not files.has_news(key, built.binary)
    assert files.wanting(np.array([built.dwo_id], np.uint64)) == [key]


def test_what_is_missing_is_known_again_after_a_restart(built: Built, tmp_path: Path) -> None:
    settings = SymbolSettings(built.folder / "symbols", debug_roots=(), free_min_bytes=0)
    first = Namer(settings)
    assert quality(first, built.binary) == Quality.FULL
    first.close()
    again = Namer(settings)
    assert quality(again, built.binary) == Quality.FULL
    with built.file.open("rb") as opened:
        assert again.take_file(opened.fileno()).binaries == 1
    assert quality(again, built.binary) == Quality.DWARF
    again.close()
