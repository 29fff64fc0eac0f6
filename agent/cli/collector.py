# SPDX-License-Identifier: Apache-2.0
"""The collector's own process: `emberwatch-agent run` becomes this. Arguments: settings as JSON, and the descriptor of its parent."""

import json
import logging
import sys

from agent.clock import Clock
from agent.config import Settings
from agent.errors import AgentError
from agent.runner.collector import Collector
from agent.runner.lifeline import Lifeline


def main() -> int:
    """Sample until told to stop; 0 when all went well, 1 when the agent could not begin."""
    settings = Settings(**json.loads(sys.argv[1]))
    level = settings.log_level.upper()
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        with Lifeline(int(sys.argv[2])) as lifeline:
            Collector(settings, Clock()).run(lifeline)
    except AgentError as error:
        print(f"emberwatch-agent: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
