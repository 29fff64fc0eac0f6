# SPDX-License-Identifier: Apache-2.0
"""What the version that each service runs has changed, as the watch found out."""

from collections.abc import Mapping

from server.fleet.deploy import Deploy
from server.fleet.kept import kept_deploys
from server.store.documents import Documents

MOST_LOOKED_AT = 500
"""Of the deploys that are kept, the latest ones: whoever opens the fleet waits for them."""


def latest_reported(documents: Documents, versions: Mapping[str, str]) -> dict[str, Deploy]:
    """`versions` is what each service runs. Its last deploy, by service, where that was of this version and has a verdict."""
    last: dict[str, Deploy] = {}
    for deploy in kept_deploys(documents, 0, MOST_LOOKED_AT):
        last.setdefault(deploy.service, deploy)
    return {name: deploy for name, deploy in last.items() if deploy.verdict is not None and versions.get(name) == deploy.version}
