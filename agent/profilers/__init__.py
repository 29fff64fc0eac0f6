# SPDX-License-Identifier: Apache-2.0
"""One module per kind: turns a drain of its maps into samples."""
