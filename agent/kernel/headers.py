# SPDX-License-Identifier: Apache-2.0
"""Writes the header tree that BCC compiles against, from the kernel's own BTF: no kernel headers are needed on the host.

BCC includes a handful of kernel headers by name. Here all of them lead to one vmlinux.h that holds only the types reachable by
value from those the programs use: a compile costs what its headers weigh (all types: 2.5 MB, 2 s; these: under 0.2 s).
The tree is kept on disk under the kernel's build id.
"""

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agent.errors import KernelError
from agent.kernel.btf import Btf, Kind
from agent.kernel.c_types import TypeWriter
from agent.kernel.helper_ids import HELPER_IDS
from agent.kernel.refusal import KernelRefusal

WRITER_VERSION = 9
"""Part of the cache key: raise it when the same BTF yields another tree."""

# What the programs take apart, and what BCC's own headers hold by value.
ROOT_COMPOSITES = (
    "task_struct",
    "mm_struct",
    "vm_area_struct",
    "maple_range_64",
    "maple_arange_64",
    "signal_struct",
    "sighand_struct",
    "pid",
    "pid_namespace",
    "xa_node",
    "mutex",
    "rw_semaphore",
    "cfs_rq",
    "files_struct",
    "fdtable",
    "file",
    "inode",
    "dentry",
    "pt_regs",
    "bpf_perf_event_data",
    "bpf_raw_tracepoint_args",
    "bpf_spin_lock",
    "bpf_timer",
    "bpf_stack_build_id",
    "bpf_cgroup_storage_key",
    "__sk_buff",
    "bpf_pidns_info",
    "bpf_iter__bpf_map_elem",
    "bpf_iter__task",
    "bpf_iter__task_file",
    "socket",
    "tcp_sock",
)
ROOT_TYPEDEFS = ("bpf_user_pt_regs_t",)
NOTE_BUILD_ID = 3

_EMPTY_HEADERS = (
    "linux/version.h",
    "linux/types.h",
    "linux/log2.h",
    "linux/bpf_common.h",
    "asm/page.h",
    "uapi/linux/ptrace.h",
    "uapi/linux/if_packet.h",
    "uapi/linux/if_ether.h",
)
_BPF_HEADER = """#ifndef EMBERWATCH_BPF_H
#define EMBERWATCH_BPF_H
#include <vmlinux.h>
#define __BPF_FUNC_MAPPER(FN)
#endif
"""


@dataclass(frozen=True, slots=True)
class KernelVersion:
    """Version, patch level and sub-level."""

    version: int
    patch_level: int
    sub_level: int

    @property
    def code(self) -> int:
        """LINUX_VERSION_CODE: the sub-level has one byte."""
        return self.version << 16 | self.patch_level << 8 | min(self.sub_level, 255)


@dataclass(frozen=True, slots=True)
class HeaderSource:
    """Where the kernel describes itself."""

    btf: Path = Path("/sys/kernel/btf/vmlinux")
    notes: Path = Path("/sys/kernel/notes")


def kernel_version(release: str) -> KernelVersion:
    """Read a release string such as 6.1.0-44-amd64 or 6.18.44-fc."""
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if not found:
        raise KernelError(f"kernel release {release!r} does not begin with a version")
    return KernelVersion(int(found[1]), int(found[2]), int(found[3] or 0))


def ensure_header_tree(directory: Path, source: HeaderSource, version: KernelVersion) -> Path:
    """The tree for this kernel inside `directory`, written when it is not there yet."""
    tree = directory / f"headers-{_kernel_id(source)}-{_roots_digest()}"
    if (tree / "complete").exists():
        return tree
    text = vmlinux_header(_read_btf(source.btf))
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = Path(tempfile.mkdtemp(prefix="headers-new-", dir=directory))
        _write_tree(fresh, text, version)
        _move_into_place(fresh, tree)
    except OSError as error:
        raise KernelError(f"cannot write the header tree {tree}: {error.strerror}") from error
    return tree


def vmlinux_header(btf: Btf) -> str:
    """The text of vmlinux.h."""
    types = TypeWriter(btf)
    for name in ROOT_COMPOSITES:
        type_id = btf.composite(name)
        if type_id is not None:
            types.add_composite(type_id)
    body = _enumerators(btf) + types.text() + _typedefs(btf, types)
    flags = "#define EMBERWATCH_REGS_CSX 1\n" if _has_csx(btf) else ""
    flags += "#define EMBERWATCH_TASK_PT_REGS 1\n" if _has_helper(btf, "BPF_FUNC_task_pt_regs") else ""
    flags += "#define EMBERWATCH_TYPED_TASK 1\n" if _has_helper(btf, "BPF_FUNC_get_current_task_btf") else ""
    flags += "#define EMBERWATCH_SCHED_EXIT 1\n" if _has_tracepoint(btf, "sched_exit_tp") else ""
    flags += _file_times(btf)
    places = _per_cpu_places(btf)
    if places is not None:
        flags += f"#define EMBERWATCH_RUNQUEUES_AT {places[0]}\n#define EMBERWATCH_PREEMPT_COUNT_AT {places[1]}\n"
    flags += f"#define EMBERWATCH_IN_IOWAIT_BIT {_member_bit(btf, 'task_struct', 'in_iowait')}\n"
    return f"#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n#pragma GCC system_header\n{flags}{body}#endif\n"


def build_id_from_notes(notes: bytes) -> bytes | None:
    """The GNU build id in an ELF note section, None when there is none. Notes: elf(5), Nhdr of three words."""
    at = 0
    while at + 12 <= len(notes):
        name_bytes, id_bytes, kind = (int.from_bytes(notes[at + i : at + i + 4], "little") for i in (0, 4, 8))
        name_at = at + 12
        id_at = name_at + (name_bytes + 3) // 4 * 4
        if kind == NOTE_BUILD_ID and notes[name_at : name_at + name_bytes] == b"GNU\0":
            found = notes[id_at : id_at + id_bytes]
            return found if 4 <= len(found) == id_bytes <= 64 else None
        at = id_at + (id_bytes + 3) // 4 * 4
    return None


def _enumerators(btf: Btf) -> str:
    """Every BPF_ constant the kernel knows, and the helpers that BCC knows besides."""
    values: dict[str, int] = {}
    for type_id in btf.ids_of_kind(Kind.ENUM, Kind.ENUM64):
        for name, value in btf.enumerators(type_id):
            if name.startswith("BPF_") or name in ("false", "true"):
                values.setdefault(name, value)
    for name, value in HELPER_IDS.items():
        values.setdefault(name, value)
    return "enum {\n" + "".join(f"{name} = {_literal(value)},\n" for name, value in values.items()) + "};\n"


def _literal(value: int) -> str:
    return f"{value}ULL" if value > 0x7FFFFFFF else str(value)


def _typedefs(btf: Btf, types: TypeWriter) -> str:
    """Names of integers (u32, pid_t …) and those of ROOT_TYPEDEFS."""
    lines: dict[str, str] = {}
    for type_id in btf.ids_of_kind(Kind.TYPEDEF):
        name = btf.name(type_id)
        target = btf.resolve(type_id)
        if target and (name in ROOT_TYPEDEFS or btf.kind(target) == Kind.INT):
            lines.setdefault(name, f"typedef {types.declare(target, name)};\n")
    return "".join(lines.values())


def _has_csx(btf: Btf) -> bool:
    """Since 6.9 pt_regs holds cs in a union whose 64 bit member is csx; BPF may read 64 bit members only."""
    type_id = btf.composite("pt_regs")
    return type_id is not None and any(
        inner.name == "csx" for member in btf.members(type_id) if not member.name for inner in btf.members(btf.resolve(member.type_id))
    )


def _has_helper(btf: Btf, name: str) -> bool:
    """Whether the kernel itself knows a helper (bpf_task_pt_regs came with 5.15)."""
    return any(name == known for type_id in btf.ids_of_kind(Kind.ENUM, Kind.ENUM64) for known, _value in btf.enumerators(type_id))


def _has_tracepoint(btf: Btf, name: str) -> bool:
    """Whether there is a tracepoint: each has a typedef for its probes."""
    return any(btf.name(type_id) == f"btf_trace_{name}" for type_id in btf.ids_of_kind(Kind.TYPEDEF))


def _per_cpu_places(btf: Btf) -> tuple[int, int] | None:
    """Where the run queue and the preempt count of a CPU lie in its own memory; None when BTF does not tell."""
    offsets = btf.section_offsets(".data..percpu")
    count = offsets.get("__preempt_count")
    if count is None and "pcpu_hot" in offsets:  # 6.2 to 6.14
        count = offsets["pcpu_hot"] + _member_bit(btf, "pcpu_hot", "preempt_count") // 8
    return (offsets["runqueues"], count) if count is not None and "runqueues" in offsets else None


def _file_times(btf: Btf) -> str:
    """Where an inode keeps its time of change, where mappings lie in a maple tree (6.1); else none are looked up."""
    split, whole = _member_bit(btf, "inode", "i_ctime_sec"), _member_bit(btf, "inode", "__i_ctime") or _member_bit(btf, "inode", "i_ctime")
    seconds_at = (split or whole) // 8  # 6.11 has two members, before it is a timespec64 of two words, named otherwise from 6.6 on
    nanoseconds_at = _member_bit(btf, "inode", "i_ctime_nsec") // 8 if split else seconds_at + 8
    if not seconds_at or btf.composite("maple_arange_64") is None:
        return ""
    places = f"#define EMBERWATCH_CTIME_S_AT {seconds_at}\n#define EMBERWATCH_CTIME_NS_AT {nanoseconds_at}\n"
    return f"#define EMBERWATCH_MAPLE_TREE 1\n{places}"


def _member_bit(btf: Btf, composite: str, member: str) -> int:
    """Offset in bits of a member, also of an unnamed struct or union in it; 0 when there is none."""
    type_id = btf.composite(composite)
    pending = [(type_id, 0)] if type_id is not None else []
    while pending:
        inner, base = pending.pop()
        for each in btf.members(inner):
            if each.name == member:
                return base + each.offset_bits
            target = btf.resolve(each.type_id)
            if not each.name and btf.kind(target) in (Kind.STRUCT, Kind.UNION):
                pending.append((target, base + each.offset_bits))
    return 0


def _read_btf(path: Path) -> Btf:
    try:
        return Btf(path.read_bytes())
    except FileNotFoundError as error:
        raise KernelRefusal(f"this kernel has no BTF ({path} is missing)", "boot one built with CONFIG_DEBUG_INFO_BTF=y") from error
    except OSError as error:
        raise KernelError(f"cannot read {path}: {error.strerror}") from error


def _kernel_id(source: HeaderSource) -> str:
    try:
        build_id = build_id_from_notes(source.notes.read_bytes())
    except OSError:
        build_id = None  # Nothing is lost but speed: BTF itself is the identity then.
    if build_id:
        return build_id.hex()
    try:
        return hashlib.sha256(source.btf.read_bytes()).hexdigest()[:40]
    except OSError:
        return "none"  # The error is raised where BTF is read for good.


def _roots_digest() -> str:
    text = " ".join((str(WRITER_VERSION), *ROOT_COMPOSITES, *ROOT_TYPEDEFS))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _write_tree(tree: Path, vmlinux: str, version: KernelVersion) -> None:
    include = tree / "include"
    for name in _EMPTY_HEADERS:
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_text("")
    (include / "vmlinux.h").write_text(vmlinux)
    (include / "uapi/linux/bpf.h").write_text(_BPF_HEADER)
    (include / "linux/kconfig.h").write_text(_kconfig(version))
    (tree / "complete").write_text("")


def _kconfig(version: KernelVersion) -> str:
    """What every compile includes first. The guard makes BCC's own copy of linux/bpf.h step aside."""
    return f"""#ifndef EMBERWATCH_KCONFIG_H
#define EMBERWATCH_KCONFIG_H
#define _UAPI__LINUX_BPF_H__
#define CONFIG_BPF_SYSCALL 1
#include <vmlinux.h>
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#ifndef LINUX_VERSION_CODE
#define LINUX_VERSION_CODE KERNEL_VERSION({version.version}, {version.patch_level}, {version.sub_level})
#endif
#define roundup_pow_of_two(n) (1UL << (64 - __builtin_clzl((n) - 1)))
#define PAGE_SIZE {os.sysconf("SC_PAGE_SIZE")}
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#endif
"""


def _move_into_place(fresh: Path, tree: Path) -> None:
    """Another agent may have written the same tree meanwhile; then its copy stays. A damaged one gives way."""
    if not (tree / "complete").exists():
        shutil.rmtree(tree, ignore_errors=True)
    try:
        fresh.rename(tree)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not (tree / "complete").exists():
            raise
