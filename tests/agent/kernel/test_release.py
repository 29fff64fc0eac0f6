# SPDX-License-Identifier: Apache-2.0
"""The last number of a release is what tells whether a fix is in it."""

import pytest

from agent.kernel.release import running_release, upstream_release


@pytest.mark.parametrize(
    ("release", "build", "signature", "upstream"),
    [
        ("6.1.0-57-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-11-26)", "", "6.1.192"),
        ("6.12.117+deb12-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1~deb12u1 (2026-11-20)", "", "6.12.117"),
        ("5.15.0-91-generic", "#101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023", "Ubuntu 5.15.0-91.101-generic 5.15.131\n", "5.15.131"),
        ("6.18.44-fc", "#1 SMP PREEMPT_DYNAMIC @0", "", "6.18.44-fc"),
        ("6.16.3", "#1 SMP Debian 6.1.192-3", "", "6.16.3"),  # A build text that speaks of another series.
        ("mainline", "#1 SMP Debian 6.1.192-3", "", "mainline"),
    ],
)
def test_release_is_the_upstream_one_where_the_kernel_tells_it(release: str, build: str, signature: str, upstream: str) -> None:
    assert upstream_release(release, build, signature) == upstream


def test_this_kernel_has_one() -> None:
    assert running_release()[0].isdigit()
