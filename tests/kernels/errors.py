# SPDX-License-Identifier: Apache-2.0
"""What keeps a kernel from being tried at all. A kernel that fails its tests is a result, not an error."""


class MatrixError(Exception):
    """Says what was being done, and with what."""
