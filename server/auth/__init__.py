# SPDX-License-Identifier: Apache-2.0
"""Users and roles: no code yet, one tenant without login, loopback only by default."""
