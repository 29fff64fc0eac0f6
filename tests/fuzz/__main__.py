# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.fuzz [MUTATIONS] [SEED]`: damages every target's seeds so many times in all, and says how they ended.

Each mutation has a bound of time; the first finding ends the run with status 1 and is kept in a file to be made a test of.
"""

import faulthandler
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.targets import Target, mutations, targets

MUTATIONS = 100_000
SHARES = {
    "elf": 0.12, "dwarf": 0.2, "table": 0.1, "module": 0.08, "split": 0.1, "kallsyms": 0.1, "notes": 0.1, "perf map": 0.1, "names": 0.1,
}  # fmt: skip
LONGEST_S = 30.0
"""One mutation; beyond it the run is ended with a trace of where it hangs."""


def fuzz(target: Target, count: int, seed: int) -> Counter[str]:
    """Run one target. Raises what it raised, having kept the bytes."""
    ends: Counter[str] = Counter()
    for data in mutations(target, count, seed):
        faulthandler.dump_traceback_later(LONGEST_S, exit=True)
        try:
            ends[target.run(data)] += 1
        except BaseException:
            with tempfile.NamedTemporaryFile(prefix=f"finding-{target.name.replace(' ', '-')}-", delete=False) as kept:
                kept.write(data)
            print(f"{target.name}: a finding, kept in {Path(kept.name)}", file=sys.stderr)
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
    return ends


def main() -> None:
    """Fuzz all."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else MUTATIONS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    for target in targets():
        start = time.monotonic()
        some = max(1, round(count * SHARES[target.name]))
        ends = fuzz(target, some, seed)
        words = ", ".join(f"{end} {number}" for end, number in ends.most_common())
        print(f"{target.name:10} {some:7} mutations in {time.monotonic() - start:6.1f} s: {words}", flush=True)


if __name__ == "__main__":
    main()
