# SPDX-License-Identifier: Apache-2.0
"""What a person is told: one reason, and one line that mends it and can be pasted whatever the path holds."""

from dataclasses import replace

import pytest

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2
from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality
from server.symbols.desk import Remedy, Why, is_on_this_host, remedy_for, remedy_for_mark, why_of
from server.symbols.history import Attempt, Outcome, Record
from server.symbols.ledger import NameState, SymbolState
from server.symbols.sources import Origin

INFO = BinaryInfo(1, pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, b"\x12" * 20, b"\7" * 16, b"/opt/app/bin/app", (), 7)
NAMED = NameState.NAMED


def attempt(origin: Origin, outcome: Outcome) -> Attempt:
    return Attempt(origin, "", outcome, "", "", 0.0)


@pytest.mark.parametrize(
    ("state", "attempts", "expected"),
    [
        (SymbolState(NAMED, "", Quality.DWARF), [], Why.NOTHING),
        (SymbolState(NAMED, "", Quality.DWARF), [attempt(Origin.DEBUGINFOD, Outcome.MISMATCH)], Why.NOTHING),
        (SymbolState(NAMED, "", Quality.FULL), [attempt(Origin.RUNNING_FILE, Outcome.OK)], Why.NO_DEBUG_DATA),
        (SymbolState(NAMED, "", Quality.FULL), [attempt(Origin.UPLOAD, Outcome.LIMIT)], Why.LIMIT),
        (SymbolState(NAMED, "", Quality.DYNAMIC), [attempt(Origin.AGENT, Outcome.OK)], Why.STRIPPED),
        (SymbolState(NAMED, "", Quality.DYNAMIC), [attempt(Origin.DEBUGINFOD, Outcome.MALFORMED)], Why.STRIPPED),
        (SymbolState(NAMED, "", Quality.DYNAMIC), [attempt(Origin.DEBUGINFOD, Outcome.MISMATCH)], Why.MISMATCH),
        (SymbolState(NameState.NONE, "the file holds no symbols"), [], Why.STRIPPED),
        (SymbolState(NameState.WANTED), [attempt(Origin.RUNNING_FILE, Outcome.NOT_FOUND)], Why.WAITING),
        (SymbolState(NameState.WANTED), [attempt(Origin.AGENT, Outcome.MALFORMED)], Why.MALFORMED),
        (SymbolState(NameState.PENDING), [], Why.READING),
        (SymbolState(NameState.FAILED), [attempt(Origin.AGENT, Outcome.LIMIT)], Why.LIMIT),
    ],
)
def test_one_reason_that_leads_on(state: SymbolState, attempts: list[Attempt], expected: Why) -> None:
    assert why_of(INFO, state, Record(0.0, tuple(attempts))) == expected


def test_binary_without_identity_and_a_kernel() -> None:
    nobody = replace(INFO, build_id_kind=pb.BUILD_ID_KIND_NONE, build_id=b"", content_hash=b"")
    assert why_of(nobody, SymbolState(NameState.NONE), Record(0.0)) == Why.NOT_ASKED
    kernel = replace(INFO, kind=pb.BINARY_KIND_KERNEL)
    assert why_of(kernel, SymbolState(NAMED, "", Quality.DWARF), Record(0.0)) == Why.NOTHING
    assert why_of(kernel, SymbolState(NAMED, "", Quality.FULL), Record(0.0)) == Why.NO_DEBUG_DATA
    assert remedy_for(Why.NO_DEBUG_DATA, kernel, {}).command == "emberwatch symbols upload vmlinux"
    assert remedy_for(Why.NOTHING, kernel, {}) == Remedy()
    remedy = remedy_for(Why.WAITING, kernel, {})
    assert ("kptr_restrict" in remedy.words, remedy.command) == (True, "")


def test_each_reason_has_its_line() -> None:
    for why in set(Why) - {Why.NOTHING, Why.READING, Why.JIT, Why.HIDDEN}:
        remedy = remedy_for(why, INFO, {})
        assert (remedy.words and "app" in remedy.command) or why == Why.NOT_ASKED, why
    assert remedy_for(Why.STRIPPED, INFO, {INFO.path: "app-dbgsym"}).command == "apt install app-dbgsym"
    assert remedy_for(Why.MISMATCH, INFO, {INFO.path: "app-dbgsym"}).command == "emberwatch symbols upload app"
    assert remedy_for(Why.READING, INFO, {}) == Remedy()


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (b"/a/$(reboot)", "emberwatch symbols upload '$(reboot)'"),
        (b"/a/b c;d", "emberwatch symbols upload 'b c;d'"),
        (b"/a/it's", "emberwatch symbols upload 'it'\"'\"'s'"),
        (b"/a/\nreboot", "emberwatch symbols upload FILE"),
        (b"/a/\xff", "emberwatch symbols upload FILE"),
        (b"", "emberwatch symbols upload FILE"),
    ],
)
def test_line_can_be_pasted_whatever_the_path_holds(path: bytes, command: str) -> None:
    assert remedy_for(Why.STRIPPED, replace(INFO, path=path), {}).command == command


@pytest.mark.parametrize(
    ("service", "flag"), [("shop", "-XX:+PreserveFramePointer"), ("Node-web", "--perf-basic-prof"), ("python3", "-X perf")]
)
def test_code_that_a_run_time_made(service: str, flag: str) -> None:
    for mark in (marks_pb2.MARK_JIT, marks_pb2.MARK_ANONYMOUS):
        why, remedy = remedy_for_mark(mark, service)
        assert (why, flag in remedy.command) == (Why.JIT, True)


def test_kernel_that_hides_its_addresses() -> None:
    why, remedy = remedy_for_mark(marks_pb2.MARK_KERNEL_HIDDEN, "shop")
    assert (why, remedy.command) == (Why.HIDDEN, "sysctl kernel.kptr_restrict=1")
    assert ("CAP_SYSLOG" in remedy.words, "kernel.kptr_restrict is 2" in remedy.words) == (True, True)


def test_file_counts_as_here_when_it_was_found_here() -> None:
    assert not is_on_this_host(Record(0.0, (attempt(Origin.RUNNING_FILE, Outcome.NOT_FOUND), attempt(Origin.AGENT, Outcome.OK))))
    assert is_on_this_host(Record(0.0, (attempt(Origin.RUNNING_FILE, Outcome.OK),)))
