# SPDX-License-Identifier: Apache-2.0
"""Runs the benches: `python -m tests.bench [--quick] [names...]`. Exit status 0 when every target was met.

Variables that tell OpenBLAS what machine it is on are left out here: they are a workaround of the place where tests run.
"""

import importlib
import os
import sys
import time

NAMES = (
    "agent",
    "daily",
    "samplers",
    "wire",
    "ingest",
    "merge",
    "diff",
    "fleet",
    "search",
    "folded",
    "paint",
    "start",
    "survey",
    "unwind",
    "stacks",
    "calls",
    "names",
    "waits",
)
_FOREIGN = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def main(arguments: list[str]) -> int:
    """Run the named benches, or all; print their lines as they come."""
    for name in _FOREIGN:
        os.environ.pop(name, None)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from tests.bench.report import head, text_of  # numpy must not be there before the environment is clean
    from tests.bench.timing import BenchError, Effort

    is_quick = "--quick" in arguments
    chosen = [name for name in arguments if name != "--quick"] or list(NAMES)
    strange = sorted(set(chosen) - set(NAMES))
    if strange:
        print(f"no such bench: {', '.join(strange)}; there are {', '.join(NAMES)}, and --quick for all of them", file=sys.stderr)
        return 2
    effort = Effort(rounds=3, size=0.1) if is_quick else Effort()
    began_s, missed, failed = time.monotonic(), 0, []
    print(head(), flush=True)
    for name in chosen:
        try:
            for line in importlib.import_module(f"tests.bench.{name}").run(effort):
                missed += line.is_met is False
                print(text_of(line), flush=True)
        except BenchError as error:
            failed.append(name)
            print(f"{name} FAILED: {error}", flush=True)
    print(f"{time.monotonic() - began_s:.0f} s, {missed} missed" + (f", failed: {', '.join(failed)}" if failed else ""))
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
