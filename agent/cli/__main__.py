# SPDX-License-Identifier: Apache-2.0
"""Entry of python -m agent.cli, the same as the command."""

from agent.cli.main import main

main()
