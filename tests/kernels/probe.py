# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest: writes what the agent's doctor says of the kernel as JSON, for results.py. `python -m tests.kernels.probe FILE`."""

import json
import os
import sys
import tempfile
from pathlib import Path

from agent.kernel.attempts import has_bcc, real_attempts
from agent.kernel.capabilities import HostView, examine
from agent.kernel.program import unwinding_denial
from agent.kernel.release import running_release
from agent.profilers.cpu import SPEC


def main(arguments: list[str]) -> int:
    """The file is there when everything was looked at."""
    system = os.uname()
    with tempfile.TemporaryDirectory() as headers:
        reports = examine(HostView(running_release(), system.machine, real_attempts(SPEC, Path(headers))), has_bcc)
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
