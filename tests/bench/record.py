# SPDX-License-Identifier: Apache-2.0
"""Records the fixed input of the benches: `python -m tests.bench.record`, as root. Run it when the layout of batches changed.

The agent's own profiler, process table and builder make one window over programs of many kinds that run meanwhile. What would tell
of this machine (its name, folders outside the system's) is put into other words before it is kept.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import zstandard

from agent.collect.window import WindowBuilder
from agent.kernel.layout import LayoutKeeper
from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.profilers.cpu import CpuProfiler, CpuSettings
from agent.records.event_drain import WindowDrain
from agent.records.process import Process, ProcessKey
from agent.records.window import WindowFacts
from emberwatch.v1 import batch_pb2 as pb
from tests.bench.windows import RECORDED, rows_of

RATE_HZ = 4999
SECONDS = 20.0
ROOT = Path(__file__).resolve().parents[2]
SYSTEM_FOLDERS = (b"/usr/", b"/lib/", b"/lib64/", b"/bin/", b"/sbin/")

_PYTHON = """
import json, re, hashlib, time, zlib, random
end = time.monotonic() + {seconds}
rows = [dict(name="n%d" % i, value=i, tags=["a", "b", str(i)]) for i in range(300)]
while time.monotonic() < end:
    text = json.dumps(rows, indent=1)
    json.loads(text); re.findall(r"n(\\d+)", text); zlib.compress(text.encode(), 6); hashlib.sha256(text.encode()).hexdigest()
    sorted(rows, key=lambda row: row["name"][::-1]); random.Random(3).shuffle(rows)
"""
_NODE = """
const end = Date.now() + {seconds} * 1000;
while (Date.now() < end) {{
  const rows = Array.from({{length: 500}}, (_, i) => ({{name: "n" + i, value: i, list: [i, i + 1]}}));
  const text = JSON.stringify(rows);
  JSON.parse(text).sort((a, b) => (a.name < b.name ? -1 : 1)).map((row) => row.name.replace(/n(\\d)/, "$1"));
}}
"""
_SHELL = "end=$((SECONDS + {seconds})); while [ $SECONDS -lt $end ]; do {work}; done"
_WORK = (
    "gcc -O2 -c -o /dev/null tests/bench/add_rows.c",
    "find /usr/share -type f | head -3000 | xargs cat 2>/dev/null | gzip -6 | wc -c >/dev/null",
    "git log -p -20 | sort | xz -1 | wc -c >/dev/null",
    "perl -e 'for (1..30000) { $h{$_ % 97} .= chr(65 + $_ % 26); } print scalar(grep { /Z+A/ } values %h)' >/dev/null",
)


def main() -> None:
    """Record, and say what came of it."""
    batch = _recorded()
    blob = zstandard.ZstdCompressor(level=19).compress(batch.SerializeToString(deterministic=True))
    RECORDED.write_bytes(blob)
    print(json.dumps({"file": RECORDED.name, "bytes": len(blob), "rows": rows_of(batch), "series": len(batch.series)}))


def _recorded() -> pb.FoldedBatch:
    with ExitStack() as closing:
        headers = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        pids = closing.enter_context(_load())
        settings = CpuSettings(RATE_HZ, pids, None, SECONDS, headers, counts_entries=1 << 17, stacks_entries=1 << 16)
        profiler = CpuProfiler.start(settings)
        closing.callback(profiler.close)
        table = ProcessTable(ProcessSettings())
        closing.callback(table.close)
        end_s = time.monotonic() + SECONDS
        while time.monotonic() < end_s:
            table.see(profiler.new_processes().sampled)
            time.sleep(0.02)
        drain = profiler.drain()

        def find(key: ProcessKey) -> Process:
            table.update((key,))
            return table.get(key)

        host = pb.HostFacts(host=b"web-1", kernel_release=b"6.1.0", online_cpus=2, agent_version="0.1.0", rate_hz=RATE_HZ, window_s=10)
        return _plain(WindowBuilder().build(WindowDrain(drain), find, LayoutKeeper().current(), WindowFacts(host, None)))


def _plain(batch: pb.FoldedBatch) -> pb.FoldedBatch:
    """The batch without folders that only this machine has."""
    for binary in batch.binaries:
        if binary.path.startswith(b"/") and not binary.path.startswith(SYSTEM_FOLDERS):
            binary.path = b"/opt/" + binary.path.rpartition(b"/")[2]
    return batch


@contextmanager
def _load() -> Iterator[frozenset[int]]:
    """Programs that end by themselves, some seconds after the recording: their PIDs."""
    seconds = int(SECONDS) + 8
    commands = [["bash", "-c", _SHELL.format(seconds=seconds, work=work)] for work in _WORK]
    commands += [[sys.executable, "-c", _PYTHON.format(seconds=seconds)], ["node", "-e", _NODE.format(seconds=seconds)]]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for command in commands]
    try:
        yield frozenset(process.pid for process in running)
    finally:
        for process in running:
            process.wait()


if __name__ == "__main__":
    main()
