# SPDX-License-Identifier: Apache-2.0
"""Compiles the C files beside this module: programs to be profiled, loops to be compared with."""

import shutil
import subprocess
from pathlib import Path

from tests.bench.timing import BenchError

_HERE = Path(__file__).parent


def compiled(name: str, folder: Path, *flags: str) -> Path:
    """Compile NAME.c into `folder` with gcc -O2 and `flags`. Raises BenchError when there is no gcc."""
    if shutil.which("gcc") is None:
        raise BenchError("gcc is not installed")
    target = folder / name
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", *flags, "-o", target, _HERE / f"{name}.c"], check=True)
    return target
