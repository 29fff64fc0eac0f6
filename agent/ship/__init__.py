# SPDX-License-Identifier: Apache-2.0
"""Windows on their way to the server: spool on disk, push over gRPC, uploads of symbols."""
