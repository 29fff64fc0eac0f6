# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest: writes what the agent's doctor says of the kernel as JSON, for results.py. `python -m tests.kernels.probe FILE`."""

import json
import os
import sys
import tempfile
from pathlib import Path

from agent.cli import doctor
from agent.kernel.program import unwinding_denial


def main(arguments: list[str]) -> int:
    """The file is there when everything was looked at."""
    system = os.uname()
    with tempfile.TemporaryDirectory() as headers:
        reports, _ = doctor.look(Path(headers))
    findings = {f"{each.name}: {each.detail}" for report in reports for each in report.findings}
    found = {
        "release": system.release,
        "build": system.version,
        "collectors": {report.name: report.state.value for report in reports},
        "findings": sorted(findings),
        "unwinding_denial": unwinding_denial(),
    }
    Path(arguments[0]).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
