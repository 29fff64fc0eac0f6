# SPDX-License-Identifier: Apache-2.0
"""A store on a SQLite file of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.store.sql_store import SqlStore
from tests.support.pushes import new_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = new_store(tmp_path)
    yield opened
    opened.close()
