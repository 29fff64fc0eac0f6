# SPDX-License-Identifier: Apache-2.0
"""What the server asks of the jailed child, and how that stands on its command line."""

import json
from dataclasses import dataclass

from server.symbols.identity import BinaryKey


@dataclass(frozen=True, slots=True)
class Job:
    """One table to make; descriptors are inherited by the child."""

    key: BinaryKey
    format: int
    """UploadFormat of the sources."""
    sources: tuple[int, ...]
    """The binary first, then files that add to it."""
    output: int
    """The empty file that becomes the table."""
    supplement: int | None = None
    """The common file that dwz moved strings and entries to (altlink)."""
    splits: int | None = None
    """A file with all .dwo and .dwp files one after another."""
    split_sizes: tuple[int, ...] = ()
    kallsyms: int | None = None
    """The list of the kernel or module beside its ELF files."""
    with_debug_data: bool = True
    """False leaves inlined calls and lines out: what is tried when the child died over them."""

    def to_json(self) -> str:
        """One argument; holds nothing but numbers and hex."""
        key = (self.key.kind, self.key.build_id_kind, self.key.build_id.hex(), self.key.content_hash.hex())
        fields = {"key": key, "format": self.format, "sources": self.sources, "output": self.output}
        fields |= {"supplement": self.supplement, "splits": self.splits, "split_sizes": self.split_sizes}
        fields |= {"kallsyms": self.kallsyms}
        return json.dumps(fields | {"with_debug_data": self.with_debug_data})


def job_from_json(text: str) -> Job:
    """Read what Job.to_json wrote."""
    fields = json.loads(text)
    kind, id_kind, build_id, content = fields["key"]
    key = BinaryKey(kind, id_kind, bytes.fromhex(build_id), bytes.fromhex(content))
    return Job(
        key=key,
        format=fields["format"],
        sources=tuple(fields["sources"]),
        output=fields["output"],
        supplement=fields["supplement"],
        splits=fields["splits"],
        split_sizes=tuple(fields["split_sizes"]),
        kallsyms=fields["kallsyms"],
        with_debug_data=fields["with_debug_data"],
    )
