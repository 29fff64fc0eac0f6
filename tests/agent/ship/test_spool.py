# SPDX-License-Identifier: Apache-2.0
"""What the spool promises: start always succeeds, damage stays where it is, and what leaves is counted."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent.ship.record import HEADER_BYTES, id_of_parcel
from agent.ship.spool import Spool, SpoolLimits
from emberwatch.v1 import marks_pb2 as marks
from tests.support.batches import START_UNIX_NS
from tests.support.parcels import parcel_of

NOW_UNIX_S = START_UNIX_NS / 1e9
RECORD_BYTES = HEADER_BYTES + len(b"frames")


def _open(directory: Path, limits: SpoolLimits | None = None, now_unix_s: float = NOW_UNIX_S) -> Spool:
    return Spool(directory, lambda: now_unix_s, limits)


def _read_all(spool: Spool) -> list[int]:
    sequences = []
    while (record := spool.oldest()) is not None:
        parcel = spool.read(record)
        spool.acknowledge(record)
        if parcel is not None:
            sequences.append(parcel.sequence)
    return sequences


def test_records_survive_a_new_start_in_order(tmp_path: Path) -> None:
    first = _open(tmp_path)
    for sequence in (1, 2, 3):
        first.append(parcel_of(sequence))
    second = _open(tmp_path)
    assert second.newest() == id_of_parcel(parcel_of(3))
    assert _read_all(second) == [1, 2, 3]
    assert _read_all(_open(tmp_path)) == []


def test_records_of_an_earlier_run_keep_their_numbers_and_come_first(tmp_path: Path) -> None:
    spool = _open(tmp_path)
    spool.append(parcel_of(9, epoch_unix_ns=100))
    spool.append(parcel_of(1, epoch_unix_ns=200))
    assert [(record.epoch_unix_ns, record.sequence) for record in filter(None, (spool.oldest(), spool.newest()))] == [(100, 9), (200, 1)]


def test_full_spool_drops_the_oldest_and_counts_its_samples(tmp_path: Path) -> None:
    spool = _open(tmp_path, SpoolLimits(disk_bytes=2 * RECORD_BYTES))
    for sequence, samples in ((1, 7), (2, 23), (3, 3), (4, 5)):
        spool.append(parcel_of(sequence, samples=samples))
    assert spool.take_losses() == {"cpu": {marks.LOSS_REASON_SPOOL_EVICTED: 30}}
    assert spool.take_losses() == {}
    assert (spool.state().records, spool.state().evicted_records) == (2, 2)
    assert _read_all(_open(tmp_path)) == [3, 4]


def test_what_is_lost_of_each_kind_is_known_after_a_restart_too(tmp_path: Path) -> None:
    _open(tmp_path).append(parcel_of(1, samples=7, others=(0, 3, 0, 5)))
    spool = _open(tmp_path)
    record = spool.oldest()
    assert record is not None and spool.read(record) is not None
    spool.reject(record, marks.LOSS_REASON_REJECTED_TIME)
    lost = {marks.LOSS_REASON_REJECTED_TIME: 7}, {marks.LOSS_REASON_REJECTED_TIME: 3}, {marks.LOSS_REASON_REJECTED_TIME: 5}
    assert spool.take_losses() == dict(zip(("cpu", "runqueue", "lock"), lost, strict=True))


def test_smaller_limit_at_the_next_start_evicts_and_counts(tmp_path: Path) -> None:
    for sequence in (1, 2, 3):
        _open(tmp_path).append(parcel_of(sequence))
    spool = _open(tmp_path, SpoolLimits(disk_bytes=RECORD_BYTES))
    assert spool.take_losses() == {"cpu": {marks.LOSS_REASON_SPOOL_EVICTED: 14}}
    assert _read_all(spool) == [3]


def test_windows_over_a_day_old_leave_by_a_clock_that_nobody_sets(tmp_path: Path) -> None:
    wall_s, boot_s = [NOW_UNIX_S], [1000.0]
    spool = Spool(tmp_path, lambda: wall_s[0], boot_s=lambda: boot_s[0])
    spool.append(parcel_of(1))
    wall_s[0] += 2 * 86400  # set ahead
    boot_s[0] += 86400
    spool.append(parcel_of(2))
    assert (spool.state().records, spool.take_losses()) == (2, {})
    wall_s[0] = 0.0  # and back
    boot_s[0] += 1
    spool.append(parcel_of(3))
    assert (spool.state().records, spool.take_losses()) == (2, {"cpu": {marks.LOSS_REASON_SPOOL_EVICTED: 7}})


@pytest.mark.parametrize(("later_s", "kept_s"), [(7 * 3600, 17 * 3600), (-7 * 3600, 24 * 3600), (365 * 86400, 3600)])
def test_windows_of_an_earlier_run_have_an_hour_at_least_and_a_day_at_most(tmp_path: Path, later_s: int, kept_s: int) -> None:
    _open(tmp_path).append(parcel_of(1))
    boot_s = [23.0]
    end_s = id_of_parcel(parcel_of(1)).end_unix_s
    spool = Spool(tmp_path, lambda: end_s + later_s, boot_s=lambda: boot_s[0])
    boot_s[0] += kept_s
    spool.append(parcel_of(2))
    assert spool.state().evicted_records == 0
    boot_s[0] += 1
    spool.append(parcel_of(3))
    assert spool.state().evicted_records == 1


def test_record_that_is_being_sent_is_not_evicted(tmp_path: Path) -> None:
    spool = _open(tmp_path, SpoolLimits(disk_bytes=2 * RECORD_BYTES))
    spool.append(parcel_of(1))
    assert spool.read(id_of_parcel(parcel_of(1))) is not None
    spool.append(parcel_of(2))
    spool.append(parcel_of(3))
    spool.acknowledge(id_of_parcel(parcel_of(1)))
    assert _read_all(spool) == [3]


def test_damaged_record_is_laid_aside_and_the_rest_is_delivered(tmp_path: Path) -> None:
    spool = _open(tmp_path)
    for sequence in (1, 2, 3):
        spool.append(parcel_of(sequence, samples=23))
    damaged = tmp_path / id_of_parcel(parcel_of(2, samples=23)).file_name
    damaged.write_bytes(damaged.read_bytes()[:-1])
    spool = _open(tmp_path)
    assert _read_all(spool) == [1, 3]
    assert spool.take_losses() == {"cpu": {marks.LOSS_REASON_SPOOL_CORRUPT: 23}}
    assert spool.state().corrupt_records == 1
    assert [path.name for path in (tmp_path / "quarantine").iterdir()] == [damaged.name]
    assert _open(tmp_path).take_losses() == {}


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"EWSPOOL1"])
def test_empty_zero_and_cut_files_are_damage(tmp_path: Path, content: bytes) -> None:
    (tmp_path / id_of_parcel(parcel_of(1)).file_name).write_bytes(content)
    spool = _open(tmp_path)
    assert _read_all(spool) == []
    assert spool.take_losses() == {"cpu": {marks.LOSS_REASON_SPOOL_CORRUPT: 7}}


def test_record_under_a_foreign_name_is_damage(tmp_path: Path) -> None:
    _open(tmp_path).append(parcel_of(1))
    (tmp_path / id_of_parcel(parcel_of(1)).file_name).rename(tmp_path / id_of_parcel(parcel_of(2)).file_name)
    assert _read_all(_open(tmp_path)) == []


def test_foreign_files_stay_and_half_written_ones_go(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("mine")
    (tmp_path / "7.parcel").mkdir()
    half = tmp_path / id_of_parcel(parcel_of(1)).file_name
    half.with_suffix(".writing").write_bytes(b"EWSP")
    assert _open(tmp_path).oldest() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["7.parcel", "README", "quarantine"]


def test_symlink_that_looks_like_a_record_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / id_of_parcel(parcel_of(1)).file_name).symlink_to(secret)
    assert _open(tmp_path / "spool").oldest() is None
    assert secret.read_text() == "secret"


def test_disk_that_refuses_leaves_memory_with_a_cap(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    spool = _open(tmp_path / "file", SpoolLimits(memory_bytes=2 * RECORD_BYTES))
    for sequence in (1, 2, 3):
        spool.append(parcel_of(sequence))
    assert (spool.state().is_memory_only, spool.state().records) == (True, 2)
    assert spool.take_losses() == {"cpu": {marks.LOSS_REASON_SPOOL_EVICTED: 7}}
    assert _read_all(spool) == [2, 3]


def test_disk_that_comes_back_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = _open(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", _refuse)
        spool.append(parcel_of(1))
    assert spool.state().is_memory_only
    assert [path.name for path in tmp_path.iterdir()] == ["quarantine"]
    spool.append(parcel_of(2))
    assert not spool.state().is_memory_only
    assert _read_all(spool) == [1, 2]


def test_refused_windows_are_kept_aside_up_to_a_limit(tmp_path: Path) -> None:
    spool = _open(tmp_path, SpoolLimits(quarantine_bytes=2 * RECORD_BYTES))
    for sequence in (1, 2, 3):
        spool.append(parcel_of(sequence))
        spool.reject(id_of_parcel(parcel_of(sequence)), marks.LOSS_REASON_REJECTED_TIME)
    assert sorted(path.name for path in (tmp_path / "quarantine").iterdir()) == [id_of_parcel(parcel_of(n)).file_name for n in (2, 3)]
    assert spool.take_losses() == {"cpu": {marks.LOSS_REASON_REJECTED_TIME: 21}}


def _refuse(_: int) -> None:
    raise OSError(28, "No space left on device")


class SpoolMachine(RuleBasedStateMachine):
    """Against a model: every window is delivered, waiting, or counted, whatever happens in between."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self.path = Path(self._directory.name)
        self.limits = SpoolLimits(disk_bytes=4 * RECORD_BYTES)
        self.spool = _open(self.path, self.limits)
        self.sequence = 0
        self.appended = self.delivered = self.lost = 0

    def teardown(self) -> None:
        self._directory.cleanup()

    @rule(samples=st.sampled_from([2, 3, 7, 23]))
    def append(self, samples: int) -> None:
        self.sequence += 1
        self.spool.append(parcel_of(self.sequence, samples=samples))
        self.appended += samples

    @rule(newest=st.booleans())
    def send(self, newest: bool) -> None:
        record = self.spool.newest() if newest else self.spool.oldest()
        if record is not None:
            parcel = self.spool.read(record)
            self.spool.acknowledge(record)
            self.delivered += parcel.samples if parcel else 0

    @rule()
    def reject(self) -> None:
        record = self.spool.oldest()
        if record is not None and self.spool.read(record) is not None:
            self.spool.reject(record, marks.LOSS_REASON_REJECTED_LIMIT)

    @rule()
    def crash_and_start(self) -> None:
        self.lost += sum(self.spool.take_losses().get("cpu", {}).values())
        self.spool = _open(self.path, self.limits)

    @rule(at=st.integers(0, 10**6), bit=st.integers(0, 7))
    @precondition(lambda self: self.spool.oldest() is not None)
    def damage(self, at: int, bit: int) -> None:
        record = self.spool.oldest()
        assert record is not None
        path = self.path / record.file_name
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= 1 << bit
        path.write_bytes(data)

    @invariant()
    def all_is_accounted_for(self) -> None:
        self.lost += sum(self.spool.take_losses().get("cpu", {}).values())
        waiting = sum(self._waiting())
        assert self.appended == self.delivered + waiting + self.lost
        assert self.spool.state().disk_bytes <= self.limits.disk_bytes

    def _waiting(self) -> list[int]:
        names = [name for name in os.listdir(self.path) if name.endswith(".parcel")]  # noqa: PTH208 - names are all that is needed
        return [int(name.removesuffix(".parcel").rsplit("-", 1)[1]) for name in names]


SpoolMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestSpoolMachine = SpoolMachine.TestCase
