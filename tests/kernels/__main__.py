# SPDX-License-Identifier: Apache-2.0
"""Runs the kernel matrix: `python -m tests.kernels [series...]`, such as 6.1. Without one: all that are offered.

Exit status 0 when every kernel was as expected; docs/kernels.md holds the results. One guest at a time.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.kernels.document import document
from tests.kernels.errors import MatrixError
from tests.kernels.expected import REQUIRED, Expectation, expectation
from tests.kernels.guest import Boot, check_qemu, run_guest
from tests.kernels.image import read_image
from tests.kernels.initramfs import initramfs
from tests.kernels.offers import Offer, download, read_offers
from tests.kernels.results import read_outcomes, read_probe
from tests.kernels.verdict import Run, surprises

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/kernels.md"
PACKAGES = ROOT / ".venv/kernels"
BUSYBOX = Path("/bin/busybox")
LIMIT_S = 3600.0
SUITE = "tests/bpf"
SCRIPT = """cd {root} || exit 2
export TMPDIR=/run PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 EMBERWATCH_TESTS_EMULATED=1
echo 1 >/proc/sys/kernel/bpf_stats_enabled
{python} -m tests.kernels.probe /run/out/probe.json
exec {python} -m pytest -v --color=no --tb=short -p no:cacheprovider -m shape --basetemp=/run/tests --junitxml=/run/out/tests.xml {suite}
"""
"""Run times of BPF programs are measured from the start on, so that nobody patches that switch while programs run: QEMU 7.2 kept what it
had translated of it, and two CPUs of Linux 6.1 hung there. Not tried without it under a newer one."""


def main(arguments: list[str]) -> int:
    """Try the kernels one after another; print a line as each ends."""
    try:
        check_qemu()
        offers = _chosen(arguments, read_offers())
        wanted = _wanted_tests()
        failed = [series for series, offer in offers.items() if not _try(offer, series, wanted)]
    except MatrixError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if failed else 0


def _chosen(series: Sequence[str], offers: dict[str, Offer]) -> dict[str, Offer]:
    missing = [each for each in series or REQUIRED if each not in offers]
    if missing:
        raise MatrixError(f"apt offers no kernel {', '.join(missing)}; it offers {', '.join(offers) or 'none'}")
    return {each: offers[each] for each in series} if series else offers


def _wanted_tests() -> frozenset[str]:
    """The tests that every guest has to run: collected here, so that one that is not collected there is missed."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "shape", SUITE]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise MatrixError(f"collect {SUITE}: {listed.stdout[-2000:]}")
    return frozenset(line for line in listed.stdout.splitlines() if "::" in line)


def _try(offer: Offer, series: str, wanted: frozenset[str]) -> bool:
    """Boot one kernel, run the tests, write the document. True when all was as expected."""
    expected = expectation(series)
    if expected is None:
        raise MatrixError(f"tests/kernels/expected.py has no row for {series} or older")
    print(f"Linux {series:6} {offer.package} ...", flush=True)
    run = _run(offer, series)
    unexpected = surprises(run, expected, wanted)
    before = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    DOCUMENT.write_text(document(before, [(run, unexpected)]))
    _tell(run, expected, unexpected)
    return not unexpected


def _run(offer: Offer, series: str) -> Run:
    image = read_image(download(offer, PACKAGES))
    began = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="emberwatch-kernels-") as directory:
        boot = Boot(Path(directory, "vmlinuz"), Path(directory, "initramfs"))
        out = Path(directory, "out")
        out.mkdir()
        boot.vmlinuz.write_bytes(image.vmlinuz)
        boot.initramfs.write_bytes(initramfs(BUSYBOX.read_bytes(), Path(__file__).with_name("init.sh").read_bytes(), image.modules))
        # Not resolved: the environment's own python is a link.
        script = SCRIPT.format(root=shlex.quote(str(ROOT)), python=shlex.quote(os.fspath(sys.executable)), suite=SUITE)
        end = run_guest(boot, script, out, LIMIT_S)
        (PACKAGES / f"console-{series}.txt").write_text(end.console)
        return Run(series, offer.package, began, end, read_probe(out / "probe.json"), read_outcomes(out / "tests.xml"))


def _tell(run: Run, expected: Expectation, unexpected: Sequence[str]) -> None:
    verdict = f"{len(unexpected)} not as expected" if unexpected else f"as expected ({expected.why})"
    print(f"Linux {run.series:6} {len(run.outcomes)} tests in {run.end.seconds:.0f} s: {verdict}", flush=True)
    for each in unexpected:
        print(f"  {each}", flush=True)
    if run.end.status is None:
        print(run.end.last_words, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
