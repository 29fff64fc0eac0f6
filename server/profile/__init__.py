# SPDX-License-Identifier: Apache-2.0
"""Pure core: trees of keys and names; no input or output."""
