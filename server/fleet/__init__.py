# SPDX-License-Identifier: Apache-2.0
"""What the server knows of hosts and their agents."""
