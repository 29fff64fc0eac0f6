# SPDX-License-Identifier: Apache-2.0
"""Keys of binaries: what is refused, and that no two of them share a file."""

import re

import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.errors import BadRequest
from server.symbols.identity import BinaryKey, key_from_proto, module_name
from tests.server.symbols.programs import proto_id

GNU, GO, NONE = pb.BUILD_ID_KIND_GNU, pb.BUILD_ID_KIND_GO, pb.BUILD_ID_KIND_NONE
ELF, KERNEL, MODULE, VDSO = pb.BINARY_KIND_ELF, pb.BINARY_KIND_KERNEL, pb.BINARY_KIND_MODULE, pb.BINARY_KIND_VDSO
HASH = b"\x07" * 16


@pytest.mark.parametrize(
    "key",
    [
        BinaryKey(ELF, GNU, b"\1" * 4, HASH),
        BinaryKey(ELF, GNU, b"\1" * 64, b""),
        BinaryKey(ELF, GO, b"a/b/c/d", HASH),
        BinaryKey(ELF, NONE, b"", HASH),
        BinaryKey(KERNEL, GNU, b"\1" * 20, b""),
        BinaryKey(MODULE, GNU, b"\1" * 20, b""),
        BinaryKey(VDSO, GNU, b"\1" * 20, HASH),
    ],
)
def test_whole_identities_are_taken(key: BinaryKey) -> None:
    assert key_from_proto(key.kind, proto_id(key)) == key


@pytest.mark.parametrize(
    ("key", "flaw"),
    [
        (BinaryKey(ELF, GNU, b"\1" * 3, HASH), "build id of 3 bytes"),
        (BinaryKey(ELF, GNU, b"\1" * 65, HASH), "build id of 65 bytes"),
        (BinaryKey(ELF, GNU, b"", HASH), "build id of 0 bytes"),
        (BinaryKey(ELF, GNU, bytes(20), HASH), "build id of zeros"),
        (BinaryKey(ELF, NONE, b"", b""), "neither build id nor content hash"),
        (BinaryKey(ELF, NONE, b"\1" * 20, HASH), "build id of unknown kind 3"),
        (BinaryKey(ELF, 0, b"\1" * 20, HASH), "build id of unknown kind 0"),
        (BinaryKey(ELF, GNU, b"\1" * 20, b"\1" * 15), "content hash of 15 bytes"),
        (BinaryKey(0, GNU, b"\1" * 20, HASH), "unknown kind of binary 0"),
        (BinaryKey(99, GNU, b"\1" * 20, HASH), "unknown kind of binary 99"),
    ],
)
def test_halves_are_refused(key: BinaryKey, flaw: str) -> None:
    assert key.flaw() == flaw
    with pytest.raises(BadRequest, match=re.escape(flaw)):
        key_from_proto(key.kind, proto_id(key))


def test_file_names_hold_hex_digits_whatever_the_id_holds() -> None:
    ids = [b"../../etc", b"/abs/olute", b"\0" * 7 + b"\1", "１２３４".encode(), b"A" * 64, b"..%2f..%2f"]
    digests = {BinaryKey(ELF, GNU, build_id, HASH).digest for build_id in ids}
    assert len(digests) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{32}", digest) for digest in digests)


def test_every_part_of_an_identity_tells_binaries_apart() -> None:
    keys = [
        BinaryKey(ELF, GNU, b"\1" * 20, HASH),
        BinaryKey(ELF, GNU, b"\1" * 20, b"\x08" * 16),
        BinaryKey(ELF, GNU, b"\1" * 20, b""),
        BinaryKey(ELF, GO, b"\1" * 20, HASH),
        BinaryKey(VDSO, GNU, b"\1" * 20, HASH),
        BinaryKey(ELF, GNU, b"\1" * 4, HASH),
        BinaryKey(ELF, NONE, b"", HASH),
        BinaryKey(ELF, NONE, b"", b"\x08" * 16),
        # The same bytes, cut between the two fields at another place.
        BinaryKey(ELF, GNU, b"\1" * 20 + HASH, b""),
    ]
    assert len({key.digest for key in keys}) == len(keys)


@pytest.mark.parametrize(
    ("kind", "path", "name"),
    [
        (KERNEL, b"", "kernel"),
        (MODULE, b"ext4", "ext4"),
        (VDSO, b"[vdso]", "[vdso]"),
        (ELF, b"/usr/lib/libc.so.6", "libc.so.6"),
        (ELF, b"/srv/a b;\xff\n", "a b;\\xff\n"),
        (ELF, b"", "?"),
        (ELF, b"/", "?"),
    ],
)
def test_module_names(kind: int, path: bytes, name: str) -> None:
    assert module_name(kind, path) == name
