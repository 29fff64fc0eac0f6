# SPDX-License-Identifier: Apache-2.0
"""Tests of the table on real processes: forks, execs, deaths, deleted files, floods."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.records.process import Fate, MappingKind, Origin, Process, ProcessKey
from emberwatch.v1 import batch_pb2 as pb
from tests.support.elf_files import EXECUTE, PT_LOAD, PT_NOTE, READ, Part, elf, gnu_build_id
from tests.support.processes import key_of, open_descriptors, python, resident_bytes, stat_of

WAIT = "print('ready'); import signal; signal.pause()"
MAP = "import mmap, sys; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC);"


def table(**changes: float) -> ProcessTable:
    return ProcessTable(replace(ProcessSettings(), **changes))  # type: ignore[arg-type]


def first_look(key: ProcessKey) -> Process:
    found = table()
    found.see([key])
    process = found.get(key)
    found.close()
    return process


def until_runs(pid: int, name: bytes) -> None:
    """Wait until `pid` runs the program `name` and its exec is over: the kernel sets the addresses of the image last."""
    image = None
    while name not in bytes(Path(f"/proc/{pid}/exe").readlink()) or not (stat := stat_of(pid)).code_start or stat != image:
        time.sleep(0.002)
        image = stat_of(pid)


def test_a_running_process_is_read_whole() -> None:
    with python(WAIT, environ={"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "service.version=2.4.1"}) as pid:
        process = first_look(key_of(pid))
    assert (process.fate, process.service, process.version) == (Fate.ALIVE, b"shop", b"2.4.1")
    kinds = {mapped.kind for mapped in process.mappings}
    assert {MappingKind.FILE, MappingKind.VDSO} <= kinds
    starts = [mapped.mapping.start for mapped in process.mappings]
    assert starts == sorted(starts)
    libc = [mapped.binary for mapped in process.mappings if mapped.mapping.path.endswith(b"/libc.so.6")]
    assert libc[0] is not None
    assert libc[0].id.build_id_kind == pb.BUILD_ID_KIND_GNU
    assert any(segment.flags & 1 for segment in libc[0].segments)


def test_ourselves_and_unknown_ones() -> None:
    assert first_look(key_of(os.getpid())).fate is Fate.ALIVE
    unknown = ProcessKey(7, 23, 31)
    process = table().get(unknown)
    assert (process.key, process.fate, process.mappings, process.service) == (unknown, Fate.EXITED, (), b"[exited]")


def test_a_reused_pid_is_not_taken_for_its_predecessor() -> None:
    with python(WAIT) as pid:
        key = key_of(pid)
        assert first_look(key._replace(start_boot_ns=key.start_boot_ns - 20_000_000)).fate is Fate.EXITED


def test_a_process_gone_at_first_sight_has_exited() -> None:
    with python(WAIT) as pid:
        key = key_of(pid)
    assert first_look(key).fate is Fate.EXITED


def test_what_was_gone_is_called_what_the_kernel_told_of_it() -> None:
    found = table()
    with python(WAIT) as pid:
        shell = key_of(pid)
        found.see([shell])
    curl, fork, lost = (ProcessKey(shell.pid, shell.start_boot_ns + more, 5) for more in (10**8, 2 * 10**8, 3 * 10**8))
    # Cgroup 0 is none: the name of the exe is what is left.
    found.note([Origin(curl, None, 0, b"curl"), Origin(fork, shell, 0, b"python3")])
    assert found.get(fork).service == found.get(shell).service
    found.update([curl, lost])
    assert [(found.get(key).fate, found.get(key).service) for key in (curl, lost)] == [(Fate.EXITED, b"curl"), (Fate.EXITED, b"[exited]")]
    found.close()


def test_what_was_read_outlives_the_process() -> None:
    found = table()
    with python(WAIT) as pid:
        key = key_of(pid)
        found.see([key])
    found.update([key])
    assert found.get(key).fate is Fate.ALIVE
    assert found.get(key).mappings
    found.forget_dead()
    assert found.get(key).fate is Fate.ALIVE  # it may have samples between the drain and its death
    found.forget_dead()
    assert found.get(key).fate is Fate.EXITED
    found.close()


def test_a_kernel_thread_is_known_by_its_flags() -> None:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    pid = next((pid for pid in pids if Path(f"/proc/{pid}/comm").read_bytes() == b"kthreadd\n"), None)
    if pid is None:
        pytest.skip("no kernel thread can be seen here")
    process = first_look(key_of(pid))
    assert (process.fate, process.service, process.mappings) == (Fate.KERNEL, b"kernel", ())


def test_exec_makes_another_program_and_the_names_do_not_mix() -> None:
    found = table()
    program = "print('ready'); import os, sys; sys.stdin.readline(); os.execv('/bin/sleep', ['sleep', '60'])"
    with subprocess.Popen([sys.executable, "-I", "-S", "-u", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        before = key_of(child.pid, exec_id=4)
        found.see([before])
        child.stdin.write(b"\n")
        child.stdin.flush()
        until_runs(child.pid, b"sleep")
        after = before._replace(exec_id=5)
        found.see([after])
        found.update([before, after])
        child.kill()
    old, new = found.get(before), found.get(after)
    assert (old.fate, new.fate, new.service) == (Fate.ALIVE, Fate.ALIVE, b"sleep")
    assert any(b"/python" in mapped.mapping.path for mapped in old.mappings)
    assert any(b"/sleep" in mapped.mapping.path for mapped in new.mappings)
    assert not any(b"/sleep" in mapped.mapping.path for mapped in old.mappings)
    found.close()


def test_a_program_read_after_its_exec_is_an_exec_race() -> None:
    found = table()
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        until_runs(child.pid, b"sleep")
        late, real = key_of(child.pid, exec_id=4), key_of(child.pid, exec_id=5)
        found.see([late])
        generation = found.get(late).generation
        found.see([real])
        child.kill()
    assert (found.get(late).fate, found.get(late).mappings) == (Fate.EXEC_RACE, ())
    assert found.get(late).generation > generation
    assert found.get(real).fate is Fate.ALIVE
    assert found.counts().exec_race == 1
    found.close()


def test_of_two_programs_seen_at_once_the_newer_one_runs() -> None:
    found = table()
    with python(WAIT) as pid:
        old, new = key_of(pid, exec_id=4), key_of(pid, exec_id=5)
        found.see([old, new])
    assert (found.get(old).fate, found.get(new).fate) == (Fate.EXEC_RACE, Fate.ALIVE)
    assert found.get(old).service == b"[exec race]"
    found.close()


def test_a_process_whose_main_thread_left_is_alive() -> None:
    program = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=lambda: time.sleep(60)).start()\n"
        "print('ready'); ctypes.CDLL(None).syscall(60, 0)\n"  # exit of one thread, x86-64
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of exit(2) here is that of x86-64")
    found = table()
    with python(program) as pid:
        while Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z":
            time.sleep(0.001)
        key = key_of(pid)
        found.see([key])
        found.update([key])
    assert found.get(key).fate is Fate.ALIVE
    assert any(mapped.mapping.path.endswith(b"/libc.so.6") for mapped in found.get(key).mappings)
    found.close()


def test_a_library_that_comes_later_is_seen(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.write_bytes(elf(Part(PT_NOTE, READ, gnu_build_id(b"\x07" * 20)), Part(PT_LOAD, EXECUTE, b"\xc3" * 4096)))
    found = table()
    take_changed = found.watch()
    program = f"import sys; print('ready'); sys.stdin.readline(); {MAP} print('mapped'); sys.stdin.readline()"
    command = [sys.executable, "-I", "-S", "-u", "-c", program, str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        key = key_of(child.pid)
        found.see([key])
        before = found.get(key)
        found.update([key])
        assert found.get(key) is before
        assert take_changed() == {key}
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        found.update([key])
        assert take_changed() == {key}
        child.kill()
    after = found.get(key)
    assert after.generation == before.generation + 1
    ids = [mapped.binary.id.build_id for mapped in after.mappings if mapped.binary is not None]
    assert b"\x07" * 20 in ids
    found.close()


def test_a_deleted_program_is_identified(tmp_path: Path) -> None:
    program = tmp_path / "prog"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([str(program), "60"]) as child:
        until_runs(child.pid, b"prog")
        program.unlink()
        process = first_look(key_of(child.pid))
        child.kill()
    main = process.mappings[0]
    assert main.mapping.path == str(program).encode() + b" (deleted)"
    if main.kind is MappingKind.UNREADABLE:
        pytest.skip("map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE here")
    assert main.binary is not None
    assert main.binary.path == "/tmp/…/prog".encode()
    assert process.service == b"prog"


def test_code_in_a_memfd_is_memory() -> None:
    program = (
        "import mmap, os; f = os.memfd_create('jit code'); os.ftruncate(f, 4096);"
        "m = mmap.mmap(f, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC);" + WAIT
    )
    with python(program) as pid:
        process = first_look(key_of(pid))
    memory = [mapped for mapped in process.mappings if mapped.mapping.path.startswith(b"/memfd:jit code")]
    assert [(mapped.kind, mapped.binary) for mapped in memory] == [(MappingKind.ANONYMOUS, None)]


def test_a_perf_map_names_what_the_process_compiled() -> None:
    program = (
        "import mmap, os, sys; m = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC);"
        "a = [l for l in open('/proc/self/maps') if ' r-xp 00000000 00:00 0 ' in l and '[' not in l][0].split('-')[0];"
        "open(f'/tmp/perf-{os.getpid()}.map', 'w').write(f'{a} 7 jitted\\n');" + WAIT
    )
    with python(program) as pid:
        process = first_look(key_of(pid))
        Path(f"/tmp/perf-{pid}.map").unlink()
    assert process.perf_map is not None
    assert list(process.perf_map.names) == [b"jitted"]
    jit = [mapped for mapped in process.mappings if mapped.kind is MappingKind.JIT]
    assert [mapped.mapping.start for mapped in jit] == process.perf_map.starts.tolist()


def test_children_without_exec_share_what_was_read() -> None:
    program = "import os, signal, sys\nif os.fork() == 0: print(os.getpid())\nsignal.pause()"
    command = [sys.executable, "-I", "-S", "-u", "-c", program]
    found = table()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        forked = int(child.stdout.readline())
        keys = [key_of(child.pid), key_of(forked)]
        found.see(keys)
        os.kill(forked, 9)
        child.kill()
    first, second = (found.get(key) for key in keys)
    assert first.fate is second.fate is Fate.ALIVE
    assert first.mappings is second.mappings
    found.close()


def test_new_processes_beyond_the_rate_are_put_off_and_counted() -> None:
    now_s = [0.0]
    found = ProcessTable(replace(ProcessSettings(), new_per_s=1, new_burst=2), now_s=lambda: now_s[0])
    with python(WAIT) as one, python(WAIT) as two, python(WAIT) as three:
        keys = [key_of(pid) for pid in (one, two, three)]
        found.see(keys)
        assert sorted(found.get(key).fate.name for key in keys) == ["ALIVE", "ALIVE", "EXITED"]
        assert found.counts().rate_limited == 1
        now_s[0] = 1.0
        found.update(keys)
        assert [found.get(key).fate for key in keys] == [Fate.ALIVE] * 3
    found.close()


def test_changes_are_told_once() -> None:
    found = table()
    take_changed = found.watch()
    with python(WAIT) as pid:
        key = key_of(pid)
        found.see([key])
        assert (take_changed(), take_changed()) == ({key}, set())
        found.update([key])
        assert take_changed() == set()
    for _ in range(3):
        found.forget_dead()
    assert take_changed() == {key}
    found.close()


def test_two_hundred_short_lives_are_snapshots_or_exited() -> None:
    late_s = [0.0]
    found = ProcessTable(ProcessSettings(), now_s=lambda: time.monotonic() + late_s[0])
    keys = []
    for _ in range(200):
        with subprocess.Popen(["/bin/true"]) as child:
            try:
                keys.append(key_of(child.pid))
            except (OSError, AssertionError):
                continue
            found.see(keys[-1:])
    late_s[0] = 60.0
    found.see([])  # Those that were met in the middle of their exec are looked at again, and are gone.
    fates = [found.get(key).fate for key in keys]
    assert set(fates) <= {Fate.ALIVE, Fate.EXITED, Fate.EXEC_RACE}
    counts = found.counts()
    assert counts.exited + counts.exec_race + sum(fate is Fate.ALIVE for fate in fates) == len(fates)
    found.close()


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A folder in memory where there is one: disks take minutes for ten thousand small files."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as folder:
        yield Path(folder)


def test_ten_thousand_processes_with_binaries_of_their_own_take_no_room(memory_path: Path) -> None:
    """Written processes: one folder that is renamed from PID to PID; starting real ones would take minutes."""
    root, program = memory_path / "root", memory_path / "root" / "bin"
    root.mkdir()
    process = memory_path / "0"
    process.mkdir()
    (process / "root").symlink_to(root)
    found = ProcessTable(replace(ProcessSettings(), new_burst=20_000, binaries_max=500), memory_path)
    before_descriptors = open_descriptors()
    after_warm_up = 0
    for pid in range(1, 10_001):
        process = process.rename(memory_path / str(pid))
        program.unlink(missing_ok=True)
        program.write_bytes(elf(Part(PT_NOTE, READ, gnu_build_id(pid.to_bytes(20, "big"))), Part(PT_LOAD, EXECUTE, b"\xc3" * 8)))
        file = program.stat()
        device = f"{os.major(file.st_dev):x}:{os.minor(file.st_dev):x}"
        (process / "stat").write_text(f"{pid} (x) S 1 2 3 0 -1 4194304 104 0 0 0 0 0 0 0 20 0 1 0 700 3133440 407 184467 4096 8192 12288\n")
        (process / "maps").write_text(f"{pid * 4096:x}-{pid * 4096 + 4096:x} r-xp 00000000 {device} {file.st_ino} /bin\n")
        key = ProcessKey(pid, 7_000_000_000, 1)
        found.see([key])
        mapped = found.get(key).mappings[0]
        assert mapped.binary is not None and mapped.binary.id.build_id == pid.to_bytes(20, "big")
        if pid == 3000:
            after_warm_up = resident_bytes()
    assert open_descriptors() - before_descriptors <= ProcessSettings().open_max
    assert resident_bytes() - after_warm_up < 8 << 20  # 7,000 processes more take 35 MB when they are kept
    assert found.counts().processes == ProcessSettings().processes_max
    assert found.counts().binaries_evicted == 9500
    found.close()


def test_a_perf_map_is_not_handed_on_by_an_exec() -> None:
    """Program a writes a map and execs b, which has code in memory at the same address."""
    jit = (
        "import mmap, os, sys; m = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC);"
        "print('ready'); sys.stdin.readline();"
    )
    program = f"open('/tmp/perf-%d.map' % __import__('os').getpid(), 'w').write('1000 7fffffff0000 of_a\\n'); {jit}"
    program += f"os.execv(sys.executable, [sys.executable, '-I', '-S', '-u', '-c', {jit!r}])"
    found = table()
    with subprocess.Popen([sys.executable, "-I", "-S", "-u", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        before = key_of(child.pid, exec_id=4)
        found.see([before])
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        after = before._replace(exec_id=5)
        found.see([after])
        found.update([after])
        child.kill()
    Path(f"/tmp/perf-{child.pid}.map").unlink()
    old = found.get(before).perf_map
    assert old is not None and list(old.names) == [b"of_a"]
    assert (found.get(after).fate, found.get(after).perf_map) == (Fate.ALIVE, None)
    found.close()
