# SPDX-License-Identifier: Apache-2.0
"""What all tests on the real kernel share: programs to profile, and the header tree written once."""

from pathlib import Path

import pytest

from tests.support.kernel import lacking_for_bpf
from tests.support.programs import Programs


@pytest.fixture(scope="session")
def header_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if lacking := lacking_for_bpf():
        pytest.skip(lacking)
    return tmp_path_factory.mktemp("headers")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    if not Programs.can_build():
        pytest.skip("needs gcc")
    return Programs(tmp_path_factory.mktemp("programs"))
