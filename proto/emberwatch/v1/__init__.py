# SPDX-License-Identifier: Apache-2.0
"""Version 1 of what agents and the server say to each other: generated messages, and the codec of their columns."""
