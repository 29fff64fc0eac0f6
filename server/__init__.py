# SPDX-License-Identifier: Apache-2.0
"""The server: stores profiles of a fleet, names them and answers questions about them."""
