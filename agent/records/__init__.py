# SPDX-License-Identifier: Apache-2.0
"""The nouns of the agent; they hold values and import nothing of it."""
