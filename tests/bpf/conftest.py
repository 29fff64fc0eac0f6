# SPDX-License-Identifier: Apache-2.0
"""What all tests on the real kernel share: programs to profile, and the header tree written once."""

from pathlib import Path

import pytest

from tests.support.kernel import lacking_for_bpf
from tests.support.programs import Programs

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is neither `exact` nor `alike` is `shape`, and runs in every guest of the kernel matrix too."""
    for item in items:
        if item.path.is_relative_to(HERE) and not any(map(item.get_closest_marker, ("exact", "alike"))):
            item.add_marker("shape")


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
