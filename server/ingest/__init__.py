# SPDX-License-Identifier: Apache-2.0
"""Takes pushes: decodes, checks limits, numbers new keys, stores in one transaction."""
