# SPDX-License-Identifier: Apache-2.0
"""The whole way from a drain to a batch, read back row by row."""

import dataclasses

import numpy as np
import pytest

from agent.collect.window import WindowBuilder
from agent.records.drain import STACK_MAP_FULL
from agent.records.event_drain import EventAccount, EventColumn, EventDrain, WindowDrain, event_keys
from agent.records.kernel_layout import KernelLayout
from agent.records.process import Fate, MappingKind, PerfMap, Process, ProcessKey
from agent.records.window import Overhead
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns
from emberwatch.v1 import marks_pb2 as marks
from tests.support.drains import (
    NO_LAYOUT,
    PERIOD_NS,
    DrainOf,
    assert_balanced,
    elf,
    events_of,
    facts,
    kernel_binary,
    layout,
    losses_of,
    mapped,
    process,
    rows_of_batch,
)

APP = elf("app")
LIBC = elf("libc")
TEXT = 0xFFFF_FFFF_8100_0000
KERNEL = layout((TEXT, TEXT + 0x10_0000, kernel_binary(), b"", 0))
CODE = mapped(0x40_0000, 0x50_0000, 0x1000, binary=APP)
WEB = process(7, CODE, mapped(0x7F00_0000_0000, 0x7F00_0010_0000, 0x2000, binary=LIBC))


def _nobody(key: ProcessKey) -> Process:
    raise AssertionError(f"no row is of {key}")


def _build(drain: DrainOf, *processes: Process, kernel: KernelLayout = NO_LAYOUT, builder: WindowBuilder | None = None) -> pb.FoldedBatch:
    by_key = {one.key: one for one in processes}
    batch = (builder or WindowBuilder()).build(WindowDrain(drain.drain()), by_key.__getitem__, kernel, facts())
    assert_balanced(batch.accounts[0])
    assert batch.accounts[0].stored == sum(drain.counts) == sum(rows_of_batch(batch).values())
    return batch


def test_rows_keep_their_stack_and_count() -> None:
    drain = DrainOf()
    drain.row(7, 23, user=[0x7F00_0000_0010, 0x40_0020, 0x40_0030])
    drain.row(7, 7, user=[0x40_0040, 0x40_0030], comm=b"worker-12")
    drain.row(7, 3, user=[0x40_0020, 0x40_0030], kernel=[TEXT + 0x50, TEXT + 0x60])
    assert rows_of_batch(_build(drain, WEB, kernel=KERNEL)) == {
        (b"web", b"main", ("libc+0x2010", "app+0x1020*", "app+0x1030*")): 23,
        (b"web", b"worker-N", ("app+0x1040", "app+0x1030*")): 7,
        (b"web", b"main", ("_text+0x50", "_text+0x60*", "app+0x1020*", "app+0x1030*")): 3,
    }


def test_processes_and_threads_that_look_alike_become_one_row() -> None:
    drain = DrainOf().row(7, 7, user=[0x40_0020], comm=b"io-1").row(7, 3, user=[0x40_0020], comm=b"io-22")
    drain.row(8, 23, user=[0x60_0020], comm=b"io-3")
    other = process(8, mapped(0x60_0000, 0x70_0000, 0x1000, binary=APP))
    assert rows_of_batch(_build(drain, WEB, other)) == {(b"web", b"io-N", ("app+0x1020",)): 33}


def test_services_do_not_mix_and_one_without_a_name_is_unknown() -> None:
    drain = DrainOf().row(7, 7, user=[0x40_0020]).row(8, 23, user=[0x40_0020]).row(9, 3, user=[0x40_0020])
    batch = _build(drain, process(7, CODE, service=b"web"), process(8, CODE, service=b"db"), process(9, CODE, service=b""))
    assert {key[0]: samples for key, samples in rows_of_batch(batch).items()} == {b"web": 7, b"db": 23, b"unknown": 3}


def test_versions_are_series_and_config_labels_stand_on_all() -> None:
    old = dataclasses.replace(process(7, CODE), version=b"1.0")
    drain = DrainOf().row(7, 7, user=[0x40_0020]).drain()
    window = dataclasses.replace(facts(), labels={"zone": b"a", "service": b"mine"}, overhead=Overhead(11, 13, 17, 19))
    batch = WindowBuilder().build(WindowDrain(drain), {old.key: old}.__getitem__, NO_LAYOUT, window)
    labels = [[(label.name, label.value) for label in series.labels] for series in batch.series]
    assert labels == [
        [("service", b"web"), ("version", b"1.0"), ("zone", b"a")],
        [("service", b"emberwatch-agent"), ("version", b"0.1.0"), ("zone", b"a")],
    ]


@pytest.mark.parametrize(
    ("error", "mark", "reason"),
    [
        (-12, "[STACK_LOST_ENOMEM]", marks.LOSS_REASON_STACK_ENOMEM),
        (-17, "[STACK_LOST_EEXIST]", marks.LOSS_REASON_STACK_EEXIST),
        (-14, "[STACK_LOST_EFAULT]", marks.LOSS_REASON_STACK_EFAULT_USER),
        (STACK_MAP_FULL, "[STACK_LOST_MAP_FULL]", marks.LOSS_REASON_STACK_MAP_FULL),
        (-22, "[STACK_LOST_OTHER]", marks.LOSS_REASON_STACK_OTHER),
    ],
)
def test_sample_whose_user_stack_was_lost_is_kept_under_a_mark(error: int, mark: str, reason: marks.LossReason) -> None:
    batch = _build(DrainOf().row(7, 7, kernel=[TEXT + 5], user_error=error), WEB, kernel=KERNEL)
    assert rows_of_batch(batch) == {(b"web", b"main", ("_text+0x5", mark)): 7}
    assert losses_of(batch.accounts[0]) == {reason: 7}


def test_both_stacks_lost_by_one_error_is_one_mark_and_one_loss() -> None:
    batch = _build(DrainOf().row(7, 7, user_error=-14, kernel_error=-14), WEB)
    assert rows_of_batch(batch) == {(b"web", b"main", ("[STACK_LOST_EFAULT]",)): 7}
    assert losses_of(batch.accounts[0]) == {marks.LOSS_REASON_STACK_EFAULT_USER: 7}


def test_user_mode_sample_without_a_kernel_part_loses_nothing() -> None:
    batch = _build(DrainOf().row(7, 7, user=[0x40_0020]), WEB)
    assert losses_of(batch.accounts[0]) == {}


def test_hash_whose_stack_is_missing_is_a_loss_not_an_empty_stack() -> None:
    drain = DrainOf().row(7, 7, user=[0x40_0020]).row(7, 23, user=[0x40_0030])
    gone = drain.keys[1][1]
    del drain.stacks[gone]
    batch = _build(drain, WEB)
    assert rows_of_batch(batch) == {(b"web", b"main", ("app+0x1020",)): 7, (b"web", b"main", ("[STACK_LOST_OTHER]",)): 23}
    assert losses_of(batch.accounts[0]) == {marks.LOSS_REASON_STACK_OTHER: 23}


def test_truncated_stack_hangs_under_a_mark_with_its_total_unchanged() -> None:
    deep = [0x40_0020] + [0x40_0030] * 126
    batch = _build(DrainOf().row(7, 7, user=deep, is_truncated=True), WEB)
    assert rows_of_batch(batch) == {(b"web", b"main", ("app+0x1020", *["app+0x1030*"] * 126, "[TRUNCATED]")): 7}
    assert losses_of(batch.accounts[0]) == {marks.LOSS_REASON_TRUNCATED: 7}


@pytest.mark.parametrize(
    ("fate", "mark", "reason"),
    [(Fate.EXITED, "[EXITED]", marks.LOSS_REASON_EXITED), (Fate.EXEC_RACE, "[EXEC_RACE]", marks.LOSS_REASON_EXEC_RACE)],
)
def test_process_that_could_not_be_read_has_one_mark_for_its_user_part(fate: Fate, mark: str, reason: marks.LossReason) -> None:
    drain = DrainOf().row(7, 7, user=[0x40_0020, 0x40_0030], kernel=[TEXT + 5]).row(7, 23, user=[0x40_0020], is_truncated=True)
    batch = _build(drain, process(7, CODE, fate=fate), kernel=KERNEL)
    assert rows_of_batch(batch) == {(b"web", b"main", ("_text+0x5", mark)): 7, (b"web", b"main", (mark,)): 23}
    assert losses_of(batch.accounts[0]) == {reason: 30}


def test_kernel_thread_has_no_user_part_and_loses_none() -> None:
    drain = DrainOf().row(2, 7, kernel=[TEXT + 5], user_error=-14, is_kernel_thread=True).row(2, 3, is_kernel_thread=True)
    batch = _build(drain, process(2, fate=Fate.KERNEL), kernel=KERNEL)
    assert rows_of_batch(batch) == {(b"web", b"main", ("_text+0x5",)): 7, (b"web", b"main", ("[NO_STACK]",)): 3}
    assert losses_of(batch.accounts[0]) == {}


def test_places_without_a_file_get_their_mark() -> None:
    strange = process(
        7,
        mapped(0x1000, 0x2000, kind=MappingKind.ANONYMOUS),
        mapped(0x3000, 0x4000, kind=MappingKind.JIT),
        mapped(0x5000, 0x6000, kind=MappingKind.UNREADABLE),
        mapped(0x7000, 0x8000, kind=MappingKind.VDSO, binary=dataclasses.replace(elf("[vdso]"), kind=pb.BINARY_KIND_VDSO)),
        mapped(0x9000, 0xA000, 1 << 40, binary=APP),
        mapped(0xFFFF_FFFF_FF60_0000, 0xFFFF_FFFF_FF60_1000, kind=MappingKind.VSYSCALL),
    )
    stack = [0x1010, 0x3010, 0x5010, 0x7010, 0x9010, 0xFFFF_FFFF_FF60_0400, 0xBEEF_0000, 0xFFFF_8000_0000_0000, 0]
    assert list(rows_of_batch(_build(DrainOf().row(7, 7, user=stack), strange))) == [
        (
            b"web",
            b"main",
            (
                *("[ANONYMOUS]", "[JIT]", "[UNREADABLE_FILE]", "[vdso]+0x10*", "[UNREADABLE_FILE]"),
                *("[VSYSCALL]", "[NO_MAPPING]", "[NO_MAPPING]", "[NO_MAPPING]"),
            ),
        )
    ]


def test_perf_map_names_jit_code_even_where_memory_is_not_executable() -> None:
    name = b"LazyCompile:~value node:internal/console/constructor:314"
    perf_map = PerfMap(np.array([0x2AC8_0E83_C246], np.uint64), np.array([0x2AC8_0E83_C246 + 0x60], np.uint64), (name,))
    node = process(7, CODE, perf_map=perf_map)
    drain = DrainOf().row(7, 7, user=[0x2AC8_0E83_C250, 0x2AC8_0E83_C2A6, 0x40_0020])
    assert list(rows_of_batch(_build(drain, node))) == [(b"web", b"main", (f"jit:{name.decode()}", "[NO_MAPPING]", "app+0x1020*"))]


def test_two_executable_segments_keep_their_own_offsets() -> None:
    second = process(7, mapped(0x73D1_2000, 0x75A9_0000, 0x14000, binary=APP), mapped(0x80_0000_0000, 0x80_0000_1000, 0x4000, binary=APP))
    assert list(rows_of_batch(_build(DrainOf().row(7, 7, user=[0x73D1_2ABC, 0x80_0000_0000]), second))) == [
        (b"web", b"main", ("app+0x14abc", "app+0x4000*"))
    ]


def test_kernel_places_are_relative_whatever_the_slide() -> None:
    def batch_at(text: int) -> pb.FoldedBatch:
        module, program = text + 0x100_0000, text + 0x200_0000
        ranges = layout(
            (text, text + 0x1000, kernel_binary(), b"", 0),
            (module, module + 0x1000, kernel_binary("ext4"), b"ext4", 0),
            (program, program + 0x100, None, b"bpf_prog_x", 0xFEDC_BA98_7654_3210),
            generation=text,
        )
        kernel = [text + 0x10, module + 0x20, program + 0x30, program + 0x100]
        return _build(DrainOf().row(7, 7, kernel=kernel, user=[0x40_0020]), WEB, kernel=ranges)

    first, second = batch_at(TEXT), batch_at(TEXT + 0x1A00_0000)
    frames = ("_text+0x10", "ext4+0x20*", "bpf:bpf_prog_x#fedcba9876543210", "[NO_MAPPING]", "app+0x1020*")
    assert rows_of_batch(first) == rows_of_batch(second) == {(b"web", b"main", frames): 7}


def test_hidden_kernel_says_so() -> None:
    drain = DrainOf().row(7, 7, kernel=[TEXT + 5], user=[0x40_0020])
    assert list(rows_of_batch(_build(drain, WEB, kernel=layout(is_hidden=True)))) == [(b"web", b"main", ("[KERNEL_HIDDEN]", "app+0x1020*"))]


def test_a_hidden_kernel_leaves_names_of_compiled_code() -> None:
    """D5: one that cannot be named does not stop the other."""
    perf_map = PerfMap(np.array([0x9000], np.uint64), np.array([0x9060], np.uint64), (b"compiled",))
    drain = DrainOf().row(7, 7, kernel=[TEXT + 5], user=[0x9010, 0x40_0020])
    batch = _build(drain, process(7, CODE, perf_map=perf_map), kernel=layout(is_hidden=True))
    assert list(rows_of_batch(batch)) == [(b"web", b"main", ("[KERNEL_HIDDEN]", "jit:compiled", "app+0x1020*"))]


def test_binaries_with_one_build_id_and_other_content_are_two() -> None:
    twin = elf("app", content=b"other content!!!")
    drain = DrainOf().row(7, 7, user=[0x40_0020]).row(8, 23, user=[0x40_0020])
    batch = _build(drain, process(7, CODE), process(8, mapped(0x40_0000, 0x50_0000, 0x1000, binary=twin), service=b"db"))
    assert sorted(binary.id.content_hash for binary in batch.binaries) == [b"", b"app.............", b"other content!!!"]


def test_every_batch_carries_the_binaries_it_uses_and_no_others() -> None:
    builder = WindowBuilder()
    for names in (["a", "b", "c"], ["c"], ["a", "b", "c"]):
        drain, processes = DrainOf(), []
        for pid, name in enumerate(names):
            drain.row(pid, 7, user=[0x40_0020])
            processes.append(process(pid, mapped(0x40_0000, 0x50_0000, binary=elf(name))))
        batch = _build(drain, *(dataclasses.replace(one, generation=hash(tuple(names))) for one in processes), builder=builder)
        assert sorted(binary.path for binary in batch.binaries) == [b"", *(f"/bin/{name}".encode() for name in names)]


def test_new_generation_of_a_process_is_looked_at_anew() -> None:
    builder, drain = WindowBuilder(), DrainOf().row(7, 7, user=[0x40_0020])
    _build(drain, process(7, CODE), builder=builder)
    changed = dataclasses.replace(process(7, mapped(0x40_0000, 0x50_0000, binary=LIBC)), generation=2)
    assert list(rows_of_batch(_build(drain, changed, builder=builder))) == [(b"web", b"main", ("libc+0x20",))]


def test_names_keep_their_raw_bytes() -> None:
    path = dataclasses.replace(APP, path=b"/bin/\xd0\xbf\xd1")
    batch = _build(DrainOf().row(7, 7, user=[0x40_0020], comm=b"\xc1x;\n</s>"), process(7, mapped(0x40_0000, 0x50_0000, binary=path)))
    assert batch.binaries[1].path == b"/bin/\xd0\xbf\xd1"
    assert columns.decode_strings(batch.strings, 9) == [b"", b"\xc1x;\n</s>"]


def test_long_chains_with_two_leaves_stay_exact() -> None:
    chain = [0x40_0000 + 16 * depth for depth in range(2, 71)]
    drain = DrainOf().row(7, 7, user=[0x40_0010, *chain]).row(7, 23, user=[0x40_0018, *chain])
    callers = tuple(f"app+{0x1000 + 16 * depth:#x}*" for depth in range(2, 71))
    batch = _build(drain, WEB)
    assert rows_of_batch(batch) == {(b"web", b"main", ("app+0x1010", *callers)): 7, (b"web", b"main", ("app+0x1018", *callers)): 23}
    assert len(columns.decode_column(batch.stacks.frames, 999)) == 1 + 69 + 2


def test_account_holds_ticks_stack_losses_and_what_was_carried() -> None:
    drain = DrainOf().row(7, 7, user_error=-12).drain(idle=101, filtered=11, lost={marks.LOSS_REASON_TIMER_MISSED: 3})
    window = dataclasses.replace(facts(), carried_losses={"cpu": {marks.LOSS_REASON_SPOOL_EVICTED: 23, marks.LOSS_REASON_TIMER_MISSED: 2}})
    (account,) = WindowBuilder().build(WindowDrain(drain), {WEB.key: WEB}.__getitem__, NO_LAYOUT, window).accounts
    assert_balanced(account)
    assert (account.kind, account.expected, account.stored, account.idle, account.filtered) == ("cpu", 147, 7, 101, 11)
    assert [(loss.reason, loss.value) for loss in account.losses] == [
        (marks.LOSS_REASON_TIMER_MISSED, 5),
        (marks.LOSS_REASON_SPOOL_EVICTED, 23),
        (marks.LOSS_REASON_STACK_ENOMEM, 7),
    ]


def test_events_lost_on_their_way_are_carried_by_their_kind_even_when_that_is_off_by_now() -> None:
    event = EventDrain(
        "lock", 0, 1, event_keys(0), (EventColumn("count", "count", pb.MERGE_SUM, np.zeros(0, np.uint64)),), EventAccount(7, 7)
    )
    carried = {kind: {marks.LOSS_REASON_SPOOL_EVICTED: 23} for kind in ("lock", "tcp")}
    window = dataclasses.replace(facts(), carried_losses=carried)
    accounts = WindowBuilder().build(WindowDrain(DrainOf().drain(), (event,)), _nobody, NO_LAYOUT, window).accounts
    assert [(one.kind, one.expected, one.filtered) for one in accounts] == [("cpu", 0, 0), ("lock", 30, 7), ("tcp", 23, 0)]
    assert all(list(one.losses) == [pb.Loss(reason=marks.LOSS_REASON_SPOOL_EVICTED, value=23)] for one in accounts[1:])


def test_idle_window_has_an_account_and_no_series() -> None:
    batch = WindowBuilder().build(WindowDrain(DrainOf().drain(idle=23)), _nobody, NO_LAYOUT, facts())
    assert (list(batch.series), batch.accounts[0].idle, batch.accounts[0].expected) == ([], 23, 23)
    assert rows_of_batch(batch) == {}


def test_cpu_columns_cost_one_and_say_three() -> None:
    (series,) = _build(DrainOf().row(7, 7, user=[0x40_0020]), WEB).series
    assert [(column.name, column.unit, column.merge, column.times_first) for column in series.columns] == [
        ("samples", "count", pb.MERGE_SUM, 0),
        ("ns", "ns", pb.MERGE_SUM, PERIOD_NS),
        ("observed", "count", pb.MERGE_SUM, 1),
    ]
    assert [len(column.values.data) for column in series.columns] == [1, 0, 0]


def test_agents_own_cost_is_a_series_with_an_empty_key() -> None:
    window = dataclasses.replace(facts(), overhead=Overhead(cpu_ns=11, bpf_ns=1300, rss_bytes=1 << 40, map_bytes=19))
    (series,) = WindowBuilder().build(WindowDrain(DrainOf().drain()), _nobody, NO_LAYOUT, window).series
    assert (series.kind, series.labels[0].value) == ("overhead", b"emberwatch-agent")
    assert [(column.name, int(columns.decode_column(column.values, 1)[0]), column.merge) for column in series.columns] == [
        ("cpu_ns", 11, pb.MERGE_SUM),
        ("bpf_ns", 1300, pb.MERGE_SUM),
        ("rss_bytes", 1 << 40, pb.MERGE_MAX),
        ("map_bytes", 19, pb.MERGE_MAX),
    ]
    assert columns.decode_column(series.new_keys.stacks, 9).tolist() == [0]


def _texts(batch: pb.FoldedBatch, indices: pb.Column) -> list[bytes]:
    strings = columns.decode_strings(batch.strings, 1 << 20)
    return [strings[index] for index in columns.decode_column(indices, 1 << 20).tolist()]


def test_events_become_series_beside_cpu_with_class_object_and_second_stack() -> None:
    waits = (
        DrainOf().row(7, 7, kernel=[TEXT + 5], user=[0x40_0020], comm=b"io-1").row(8, 23, kernel=[TEXT + 5], user=[0x40_0020], comm=b"io-2")
    )
    waits.row(7, 3, kernel=[TEXT + 5], user=[0x40_0020], comm=b"io-1")
    wakers = DrainOf().row(9, 1, user=[0x40_0040]).row(9, 1, user=[0x40_0040]).row(9, 1, user=[0x40_0040])
    waits.stacks |= wakers.stacks
    waits.stops |= wakers.stops
    seconds = wakers.drain().keys
    seconds[2] = np.zeros(1, seconds.dtype)[0]
    values = [
        EventColumn("count", "count", pb.MERGE_SUM, np.array([7, 23, 3], np.uint64)),
        EventColumn("max_ns", "ns", pb.MERGE_MAX, np.array([70, 20, 3], np.uint64)),
        EventColumn("bucket_00", "count", pb.MERGE_HISTOGRAM, np.zeros(3, np.uint64)),
    ]
    texts = {"classes": (b"", b"lock", b"disk"), "objects": (b"", b"futex", b"unused")}
    numbers = {"class_of_row": np.array([1, 1, 0]), "object_of_row": np.array([1, 1, 0])}
    account = EventAccount(38, 2, {marks.LOSS_REASON_MAP_FULL: 3})
    event = events_of("offcpu", waits, columns=tuple(values), seconds=seconds, account=account, **texts, **numbers)
    other, waker = process(8, CODE), process(9, CODE, service=b"waker")
    by_key = {one.key: one for one in (WEB, other, waker)}
    batch = WindowBuilder().build(WindowDrain(DrainOf().row(7, 5, user=[0x40_0020]).drain(), [event]), by_key.__getitem__, KERNEL, facts())
    cpu, offcpu = batch.series
    assert (cpu.kind, offcpu.kind) == ("cpu", "offcpu")
    assert [(column.name, columns.decode_column(column.values, 9).tolist()) for column in offcpu.columns] == [
        ("count", [3, 30]),
        ("max_ns", [3, 70]),
    ]
    assert _texts(batch, offcpu.new_keys.classes) == [b"", b"lock"]
    assert _texts(batch, offcpu.new_keys.objects) == [b"", b"futex"]
    assert _texts(batch, offcpu.new_keys.threads) == [b"io-N", b"io-N"]
    assert [second != 0 for second in columns.decode_column(offcpu.new_keys.seconds, 9).tolist()] == [False, True]
    assert b"unused" not in columns.decode_strings(batch.strings, 1 << 20)
    account_sent = batch.accounts[1]
    assert (account_sent.kind, account_sent.expected, account_sent.stored, account_sent.filtered) == ("offcpu", 38, 33, 2)
    assert losses_of(account_sent) == {marks.LOSS_REASON_MAP_FULL: 3}
    assert_balanced(account_sent)
    assert losses_of(batch.accounts[0]) == {}


def test_lost_stacks_of_events_are_losses_of_their_kind_alone() -> None:
    event = events_of("offcpu", DrainOf().row(7, 7, user_error=-12))
    batch = WindowBuilder().build(
        WindowDrain(DrainOf().row(7, 5, user=[0x40_0020]).drain(), [event]), {WEB.key: WEB}.__getitem__, KERNEL, facts()
    )
    assert [losses_of(account) for account in batch.accounts] == [{}, {marks.LOSS_REASON_STACK_ENOMEM: 7}]


def test_kind_without_stacks_has_rows_of_the_empty_stack() -> None:
    keys = DrainOf().row(7, 7, comm=b"").drain().keys
    values = (EventColumn("switches", "count", pb.MERGE_SUM, np.array([7], np.uint64)),)
    event = EventDrain("time", 0, 1, keys, values, EventAccount(7, 0))
    batch = WindowBuilder().build(WindowDrain(DrainOf().drain(), [event]), {WEB.key: WEB}.__getitem__, KERNEL, facts())
    (series,) = batch.series
    assert columns.decode_column(series.new_keys.stacks, 9).tolist() == [0]
    assert losses_of(batch.accounts[1]) == {}
