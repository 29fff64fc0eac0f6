# SPDX-License-Identifier: Apache-2.0
"""Turns the bytes of a push into a DecodedPush (hop 7 of the path in README): parsed, bounded, and every index checked.

A batch comes from outside. Whatever passes here can be stored without a further look: indices lie in their tables, parents stand before
their children, columns have equal lengths, known keys ascend.
"""

from google.protobuf.message import DecodeError

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import columns, packing
from server.errors import BadRequest, LimitExceeded
from server.ingest.checks import bounded, name, text_of
from server.ingest.inflate import inflate
from server.ingest.limits import IngestLimits
from server.ingest.rows import decode_series
from server.ingest.tables import decode_binaries, decode_frames, decode_stacks, decode_strings
from server.ingest.window_time import window_time
from server.store.push import DecodedPush, PushAccount, PushEnvelope, PushHost

BATCH_VERSION = 1
_MOST_COUNT = 1 << 62
_MOST_LOSSES = 1024
_MOST_REASON = 0xFFFF
"""Reasons stand in 16 bits where accounts are rolled up (server.store.segments)."""


def decode_push(request: collector.PushRequest, received_unix_ns: int, limits: IngestLimits) -> DecodedPush:
    """Decode a push. Raises BadRequest, LimitExceeded or TimeRejected with a sentence that names what is wrong."""
    envelope = _envelope(request, received_unix_ns, limits)
    if len(request.payload) > limits.payload_bytes:
        raise LimitExceeded(f"the payload has {len(request.payload)} bytes; the limit is {limits.payload_bytes}")
    raw = inflate(request.payload, request.raw_size_bytes, request.raw_crc32, limits.raw_bytes)
    try:
        batch = pb.FoldedBatch.FromString(raw)
    except DecodeError as error:
        raise BadRequest(f"the payload is not a FoldedBatch: {error}") from error
    try:
        packing.unpack(batch, limits.table_entries)
        return _decode_batch(envelope, batch, limits)
    except columns.ColumnError as error:
        raise BadRequest(f"the batch is malformed: {error}") from error


def _decode_batch(envelope: PushEnvelope, batch: pb.FoldedBatch, limits: IngestLimits) -> DecodedPush:
    if batch.version != BATCH_VERSION:
        raise BadRequest(f"the batch has layout {batch.version}; this server reads {BATCH_VERSION}: use an agent and a server of one age")
    strings = decode_strings(batch.strings, limits)
    binaries = decode_binaries(batch.binaries, limits)
    frames = decode_frames(batch.frames, binaries, len(strings), limits)
    stacks = decode_stacks(batch.stacks, frames.kinds.size, limits)
    series = decode_series(batch.series, stacks.parents.size, len(strings), limits)
    accounts = [_account(account, limits) for account in bounded(batch.accounts, limits.accounts, "accounts")]
    return DecodedPush(envelope, _host(batch.host, limits), strings, binaries, frames, stacks, series, accounts)


def _envelope(request: collector.PushRequest, received_unix_ns: int, limits: IngestLimits) -> PushEnvelope:
    if len(request.agent_id) != 16:
        raise BadRequest(f"agent_id has {len(request.agent_id)} bytes instead of 16")
    if not 0 < request.sequence < _MOST_COUNT or request.epoch_unix_ns >= _MOST_COUNT:
        raise BadRequest(f"sequence {request.sequence} of epoch {request.epoch_unix_ns} is out of range")
    when = window_time(request.window_start_unix_ns, request.window_end_unix_ns, received_unix_ns, limits)
    return PushEnvelope(
        agent_id=request.agent_id,
        epoch_unix_ns=request.epoch_unix_ns,
        sequence=request.sequence,
        part=request.part,
        is_last_part=request.is_last_part,
        start_unix_ns=when.start_unix_ns,
        end_unix_ns=when.end_unix_ns,
        received_unix_ns=received_unix_ns,
        is_time_suspect=when.is_suspect,
        dictionary_id=request.dictionary_id,
    )


def _host(facts: pb.HostFacts, limits: IngestLimits) -> PushHost:
    texts = (facts.host, facts.kernel_release, facts.agent_version.encode(), *(flag.encode() for flag in facts.flags))
    if len(facts.flags) > limits.flags or any(len(text) > limits.name_bytes for text in texts):
        raise LimitExceeded(f"the facts of the host are larger than {limits.flags} flags or {limits.name_bytes} bytes each")
    if not facts.host or len(facts.host) > limits.label_value_bytes:
        raise BadRequest(f"the name of the host has {len(facts.host)} bytes; it must have 1 to {limits.label_value_bytes}")
    return PushHost(
        host=text_of(facts.host),
        kernel_release=text_of(facts.kernel_release),
        agent_version=facts.agent_version.replace("\0", "\\x00"),
        online_cpus=facts.online_cpus,
        rate_hz=facts.rate_hz,
        window_s=facts.window_s,
        flags=tuple(sorted(flag.replace("\0", "\\x00") for flag in facts.flags)),
    )


def _account(account: pb.Account, limits: IngestLimits) -> PushAccount:
    kind = name(account.kind, limits.label_name_bytes, "the kind of an account")
    losses: dict[int, int] = {}
    for loss in bounded(account.losses, _MOST_LOSSES, "losses of an account"):
        losses[loss.reason] = losses.get(loss.reason, 0) + loss.value
    if min(losses, default=1) <= 0:
        raise BadRequest(f"an account of {kind} has a loss without a reason")
    if max(losses, default=0) > _MOST_REASON:
        raise BadRequest(f"an account of {kind} has a loss with reason {max(losses)}, which cannot be")
    counts = (account.expected, account.stored, account.idle, account.filtered, *losses.values())
    if max(counts) >= _MOST_COUNT >> 16:
        raise BadRequest(f"a count of {max(counts)} in the account of {kind} cannot be")
    return PushAccount(kind, account.expected, account.stored, account.idle, account.filtered, losses)
