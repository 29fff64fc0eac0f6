# SPDX-License-Identifier: Apache-2.0
"""Views that were saved under a name, and views that were shared: their answers as they were, for whoever has the token, until they expire.

There is no login: a share keeps nothing from people who reach the server anyway. What it gives is a link that shows the same picture
when the profiles are gone, that ends by itself, and that a proxy can let out alone (it needs GET /shared/ and /api/v1/shared/ and the
page's own files). Tokens are 128 random bits and kept as hashes; who reads the database cannot open a share.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.query.timerange import SECOND_NS
from server.store.documents import Collection, Document, Documents

VIEWS = Collection("views", 500, drops_oldest=False)
SHARES = Collection("shares", 500, drops_oldest=False)
HEADS = Collection("share_heads", 500, drops_oldest=False)
"""What is listed of shares: without their answers."""
TOKEN_BYTES = 16
LEAST_EXPIRES_S = 60
MOST_EXPIRES_S = 90 * 86_400
_NEVER = 0


@dataclass(frozen=True, slots=True)
class View:
    """A saved view."""

    view_id: str
    name: str
    address: str
    """Path and query in the page."""
    saved_unix_ns: int


@dataclass(frozen=True, slots=True)
class Share:
    """A shared view, without its answers. `share_id` names it to its owner and opens nothing."""

    share_id: str
    title: str
    address: str
    created_unix_ns: int
    expires_unix_ns: int


def save_view(documents: Documents, name: str, address: str, now_unix_ns: int) -> View:
    """Keep a view; one of the same name is replaced. Raises LimitExceeded when there are too many."""
    view = View(hashlib.blake2b(name.encode(), digest_size=8).hexdigest(), name, address, now_unix_ns)
    documents.put(VIEWS, Document(view.view_id, now_unix_ns, {"name": name, "address": address}), now_unix_ns)
    return view


def saved_views(documents: Documents) -> list[View]:
    """All of them, by name."""
    found = [View(one.key, one.body["name"], one.body["address"], one.at_unix_ns) for one in documents.newest(VIEWS, _NEVER)]
    return sorted(found, key=lambda view: view.name.casefold())


def drop_view(documents: Documents, view_id: str) -> bool:
    """Forget a view; False when there is none."""
    return documents.drop(VIEWS, view_id)


def make_share(documents: Documents, what: tuple[str, str], answers: Mapping[str, Any], span_ns: tuple[int, int]) -> tuple[Share, str]:
    """Keep the answers of a view (title, address) over [now, expiry); gives the share and its token, which is not kept."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    key = _key(token)
    (title, address), (now, expires) = what, span_ns
    share = Share(key[:16], title, address, now, expires)
    head = {"title": title, "address": address, "expires": expires}
    documents.put(HEADS, Document(share.share_id, now, {**head, "key": key}, expires), now)
    documents.put(SHARES, Document(key, now, {**head, "answers": dict(answers)}, expires), now)
    return share, token


def shares(documents: Documents, now_unix_ns: int) -> list[Share]:
    """Those that have not expired, the latest first."""
    return [
        Share(one.key, one.body["title"], one.body["address"], one.at_unix_ns, one.expires_unix_ns)
        for one in documents.newest(HEADS, now_unix_ns)
    ]


def revoke(documents: Documents, share_id: str, now_unix_ns: int) -> bool:
    """End a share now; False when there is none."""
    head = documents.get(HEADS, share_id, now_unix_ns)
    if head is None:
        return False
    documents.drop(SHARES, head.body["key"])
    return documents.drop(HEADS, share_id)


def opened(documents: Documents, token: str, now_unix_ns: int) -> Mapping[str, Any] | None:
    """Give what a token opens; None when it is unknown, revoked or past."""
    document = documents.get(SHARES, _key(token), now_unix_ns)
    if document is None:
        return None
    return {**document.body, "created_s": document.at_unix_ns / SECOND_NS, "expires_s": document.expires_unix_ns / SECOND_NS}


def _key(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
