# SPDX-License-Identifier: Apache-2.0
"""The page, found through importlib.resources as server.web."""
