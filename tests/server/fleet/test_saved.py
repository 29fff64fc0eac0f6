# SPDX-License-Identifier: Apache-2.0
"""Tokens of shares: random, and of 128 bits."""

import base64

from server.fleet.saved import make_share, opened, shares
from tests.server.query.fakes import FakeStore


def test_tokens_are_128_bits_and_differ() -> None:
    documents = FakeStore().documents
    tokens = {make_share(documents, ("t", "/"), {}, (7, 100))[1] for _ in range(50)}
    assert len(tokens) == 50 and all(len(base64.urlsafe_b64decode(token + "==")) == 16 for token in tokens)
    assert len(shares(documents, 8)) == 50
    assert all(opened(documents, token, 99) for token in tokens) and not any(opened(documents, token, 100) for token in tokens)
