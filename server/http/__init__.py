# SPDX-License-Identifier: Apache-2.0
"""Routes: the API under /api/v1 and the page."""
