# SPDX-License-Identifier: Apache-2.0
"""Which kernels the configured sources of apt offer: of each series the newest plain image for 64-bit PCs."""

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kernels.errors import MatrixError

OLDEST_SERIES = (5, 10)
NAME = re.compile(r"linux-image-(\d+)\.(\d+)\.(\d+)(?:-(\d+))?(?:\+deb\d+)?-amd64")
"""linux-image-6.1.0-57-amd64 counts its releases behind the dash, linux-image-6.12.117+deb12-amd64 in the third number."""


@dataclass(frozen=True, slots=True, order=True)
class Offer:
    """A package that holds a kernel. Sorts by age."""

    series: tuple[int, int]
    release: tuple[int, int]
    package: str


def read_offers() -> dict[str, Offer]:
    """By series, such as "6.1", oldest first."""
    command = ["apt-cache", "search", "--names-only", "^linux-image-[0-9.]+.*-amd64$"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise MatrixError(f"apt-cache search: {error}") from error
    return newest_by_series(line.partition(" ")[0] for line in listed.splitlines())


def newest_by_series(packages: Iterable[str]) -> dict[str, Offer]:
    """Series older than the oldest that is supported are left out, as are images with debug symbols, unsigned, real-time and cloud ones."""
    return {series_text(offer.series): offer for offer in sorted(_offers(packages)) if offer.series >= OLDEST_SERIES}


def series_text(series: tuple[int, int]) -> str:
    return f"{series[0]}.{series[1]}"


def series_key(text: str) -> tuple[int, ...]:
    """To sort series by."""
    return tuple(int(part) for part in text.split("."))


def download(offer: Offer, directory: Path) -> Path:
    """The package as apt has it now; one that is in the directory already is not fetched again."""
    directory.mkdir(parents=True, exist_ok=True)
    if not (found := list(directory.glob(f"{offer.package}_*.deb"))):
        try:
            subprocess.run(["apt-get", "download", "-qq", offer.package], cwd=directory, check=True, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise MatrixError(f"apt-get download {offer.package}: {error}; try apt-get update") from error
        found = list(directory.glob(f"{offer.package}_*.deb"))
    return found[0]


def _offers(packages: Iterable[str]) -> Iterator[Offer]:
    for package in packages:
        if found := NAME.fullmatch(package):
            major, minor, third, fourth = (int(part or 0) for part in found.groups())
            yield Offer((major, minor), (third, fourth), package)
