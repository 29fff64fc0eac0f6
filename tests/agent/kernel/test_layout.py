# SPDX-License-Identifier: Apache-2.0
"""Tests of the kernel's layout on written kallsyms; one reads the kernel that runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.kernel.layout import PROGRAMS_PAUSE_S, LayoutKeeper, kallsyms_upload, read_layout
from agent.kernel.modules import KernelSources
from agent.records.kernel_layout import KernelLayout, KernelRange
from emberwatch.v1 import batch_pb2 as pb
from tests.support.elf_files import gnu_build_id

BUILD_ID = bytes(range(1, 21))
MODULE_ID = bytes(range(41, 61))
TEXT, MODULE, PROGRAM = 0xFFFFFFFF81000000, 0xFFFFFFFFC0200000, 0xFFFFFFFFC0400000


def kallsyms(slide: int = 0, module_slide: int = 0, programs: str = "") -> str:
    """An image of 0x3000 bytes, a module of one page, ftrace's own page."""
    image = [
        (0x0, "A", "fixed_percpu_data"),
        (TEXT + slide, "T", "_stext"),
        (TEXT + slide, "T", "_text"),
        (TEXT + slide + 0x40, "t", "do_one"),
        (TEXT + slide + 0x40, "T", "alias_of_one"),
        (TEXT + slide + 0x1000, "W", "weak_one"),
        (TEXT + slide + 0x2000, "d", "data_between"),
        (TEXT + slide + 0x3000, "T", "_etext"),
        (TEXT + slide + 0x5000, "D", "data_behind"),
        (TEXT + slide + 0x6000, "t", "init_code"),
    ]
    module = [
        (MODULE + module_slide + 0x40, "t", "second"),
        (MODULE + module_slide + 0x10, "T", "first"),
        (MODULE + module_slide + 0x9000, "d", "data"),
    ]
    return (
        "".join(f"{addr:016x} {kind} {name}\n" for addr, kind, name in image)
        + "".join(f"{addr:016x} {kind} {name}\t[ext4]\n" for addr, kind, name in module)
        + "ffffffffc0300000 t ftrace_trampoline\t[__builtin__ftrace]\n"
        + programs
    )


def sources(tmp_path: Path, text: str, modules: str = "ext4 36864 3 - Live 0xffffffffc0200000\n") -> KernelSources:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "kallsyms").write_text(text)
    (tmp_path / "modules").write_text(modules)
    (tmp_path / "notes").write_bytes(gnu_build_id(BUILD_ID))
    notes = tmp_path / "module" / "ext4" / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / ".note.gnu.build-id").write_bytes(gnu_build_id(MODULE_ID))
    return KernelSources(tmp_path / "kallsyms", tmp_path / "modules", tmp_path / "module", tmp_path / "notes", frozenset)


def find(layout: KernelLayout, addr: int) -> KernelRange | None:
    return next((found for found in layout.ranges if found.start <= addr < found.end), None)


def test_image_and_module_have_their_own_ids(tmp_path: Path) -> None:
    layout = read_layout(None, sources(tmp_path, kallsyms()))
    image, module = layout.ranges
    assert (image.start, image.end, image.name, image.tag) == (TEXT, TEXT + 0x3000, b"", 0)
    assert image.binary is not None and module.binary is not None
    assert (image.binary.kind, image.binary.id.build_id) == (pb.BINARY_KIND_KERNEL, BUILD_ID)
    # from its lowest text symbol to the end of the page of its highest
    assert (module.start, module.end, module.name) == (MODULE + 0x10, MODULE + 0x1000, b"ext4")
    assert (module.binary.kind, module.binary.id.build_id, module.binary.path) == (pb.BINARY_KIND_MODULE, MODULE_ID, b"ext4")
    assert not layout.is_hidden


def test_uploads_are_equal_whatever_the_slide(tmp_path: Path) -> None:
    plain = sources(tmp_path / "a", kallsyms())
    slid = sources(tmp_path / "b", kallsyms(0x1E600000, 0x7A000))
    image, module = (found.binary for found in read_layout(None, plain).ranges)
    assert image is not None and module is not None
    assert [found.binary for found in read_layout(None, slid).ranges] == [image, module]
    expected_image = b"0 T _stext\n0 T _text\n40 T alias_of_one\n40 t do_one\n1000 W weak_one\n3000 ! \n"
    assert kallsyms_upload(image, plain) == kallsyms_upload(image, slid) == expected_image
    assert kallsyms_upload(module, plain) == kallsyms_upload(module, slid) == b"0 T first\n30 t second\nff0 ! \n"


def test_an_upload_of_something_else_is_none(tmp_path: Path) -> None:
    files = sources(tmp_path, kallsyms())
    image = read_layout(None, files).ranges[0].binary
    assert image is not None
    assert kallsyms_upload(replace(image, id=image.id._replace(build_id=MODULE_ID)), files) is None


def test_zeros_mean_hidden(tmp_path: Path) -> None:
    zeros = "0000000000000000 T _stext\n0000000000000000 T _text\n0000000000000000 T _etext\n"
    layout = read_layout(None, sources(tmp_path, zeros))
    assert (layout.is_hidden, layout.ranges) == (True, ())
    assert read_layout(None, KernelSources(kallsyms=tmp_path / "nothing")).is_hidden


def test_programs_are_known_by_name_and_tag(tmp_path: Path) -> None:
    programs = (
        f"{PROGRAM:016x} t bpf_prog_00000000000000ff_on_tick\t[bpf]\n"
        f"{PROGRAM:016x} t bpf_prog_00000000000000ff_on_tick\t[bpf]\n"
        f"{PROGRAM + 0x200:016x} t bpf_prog_6deef7357e7b4530\t[bpf]\n"
        f"{PROGRAM + 0x900000:016x} t bpf_trampoline_6442536467\t[bpf]\n"
    )
    layout = read_layout(None, sources(tmp_path, kallsyms(programs=programs)))
    assert [(r.start - PROGRAM, r.end - PROGRAM, r.name, r.tag, r.binary) for r in layout.ranges[2:]] == [
        (0, 0x200, b"on_tick", 0xFF, None),
        (0x200, 0x40200, b"", 0x6DEEF7357E7B4530, None),
        (0x900000, 0x940000, b"bpf_trampoline", 0, None),
    ]


def test_a_reused_address_never_keeps_the_old_name(tmp_path: Path) -> None:
    ids = {frozenset({7})}
    files = sources(tmp_path, kallsyms(programs=f"{PROGRAM:016x} t bpf_prog_{7:016x}_old\t[bpf]\n"))
    now_s = [0.0]
    keeper = LayoutKeeper(replace(files, bpf_programs=lambda: next(iter(ids))), now_s=lambda: now_s[0])
    before = keeper.current()
    old = find(before, PROGRAM)
    assert old is not None and old.name == b"old"
    files.kallsyms.write_text(kallsyms(programs=f"{PROGRAM:016x} t bpf_prog_{23:016x}_new\t[bpf]\n"))
    assert keeper.current() is before  # nothing told of a change yet
    ids = {frozenset({23})}
    assert find(keeper.current(), PROGRAM) is None  # programs changed, and it is too soon to read again: no name at all
    assert len(keeper.current().ranges) == len(before.ranges) - 1
    now_s[0] = PROGRAMS_PAUSE_S
    new = find(keeper.current(), PROGRAM)
    assert new is not None and (new.name, new.tag) == (b"new", 23)
    assert keeper.current().generation > before.generation


def test_a_module_that_comes_is_seen_and_references_do_not_matter(tmp_path: Path) -> None:
    files = sources(tmp_path, kallsyms())
    keeper = LayoutKeeper(files, now_s=lambda: 0.0)
    before = keeper.current()
    files.kallsyms.write_text(kallsyms() + f"{PROGRAM:016x} t late\t[xfs]\n")
    files.modules.write_text("ext4 36864 99 - Live 0xffffffffc0200000\n")
    assert keeper.current() is before
    files.modules.write_text("ext4 36864 99 - Live 0xffffffffc0200000\nxfs 4096 0 - Live 0xffffffffc0400000\n")
    late = find(keeper.current(), PROGRAM)
    assert late is not None and late.name == b"xfs"


def test_misses_and_age_read_again(tmp_path: Path) -> None:
    now_s = [0.0]
    files = replace(sources(tmp_path, kallsyms()), bpf_programs=lambda: None)
    keeper = LayoutKeeper(files, now_s=lambda: now_s[0])
    files.kallsyms.write_text(kallsyms(programs=f"{PROGRAM:016x} t bpf_prog_{7:016x}_p\t[bpf]\n"))
    keeper.miss([PROGRAM])
    now_s[0] = 29.0
    assert find(keeper.current(), PROGRAM) is None
    now_s[0] = 31.0
    assert find(keeper.current(), PROGRAM) is not None
    files.kallsyms.write_text(kallsyms())
    keeper.miss([PROGRAM + 7])  # the same page: no news
    now_s[0] = 90.0
    assert find(keeper.current(), PROGRAM) is not None
    now_s[0] = 92.0  # 61 s old
    assert find(keeper.current(), PROGRAM) is None


def test_a_module_still_loading_has_no_range(tmp_path: Path) -> None:
    layout = read_layout(None, sources(tmp_path, kallsyms(), "ext4 36864 3 - Loading 0xffffffffc0200000\n"))
    assert [found.name for found in layout.ranges] == [b""]


def test_modules_without_build_ids_are_told_apart_by_content(tmp_path: Path) -> None:
    text = kallsyms() + f"{PROGRAM:016x} t one\t[a]\n{PROGRAM + 0x1000:016x} t one\t[b]\n"
    layout = read_layout(None, sources(tmp_path, text, ""))
    ids = [found.binary.id for found in layout.ranges[2:] if found.binary is not None]
    assert [one.build_id_kind for one in ids] == [pb.BUILD_ID_KIND_NONE] * 2
    assert len(set(ids)) == 2 and all(len(one.content_hash) == 16 for one in ids)


def test_ranges_that_overlap_are_not_used(tmp_path: Path) -> None:
    text = kallsyms() + f"{MODULE + 0x20:016x} t inside\t[liar]\n{MODULE + 0x8000:016x} t far\t[liar]\n"
    layout = read_layout(None, sources(tmp_path, text, ""))
    assert [found.name for found in layout.ranges] == [b""]


def test_an_unchanged_layout_is_the_same_object(tmp_path: Path) -> None:
    files = sources(tmp_path, kallsyms())
    layout = read_layout(None, files)
    assert read_layout(layout, files) is layout


def test_this_kernel() -> None:
    layout = read_layout(None)
    if layout.is_hidden:
        pytest.skip("kernel addresses are hidden (kptr_restrict, or not root)")
    image = next(found for found in layout.ranges if found.name == b"")
    assert image.binary is not None
    upload = kallsyms_upload(image.binary)
    assert upload is not None
    assert upload.count(b"\n") > 10_000
    assert all(before.end <= after.start for before, after in zip(layout.ranges, layout.ranges[1:], strict=False))
