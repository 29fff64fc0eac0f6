# SPDX-License-Identifier: Apache-2.0
"""Names: uploads, symbol tables, and the resolution of frames."""
