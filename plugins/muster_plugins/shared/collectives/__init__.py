"""What checks of collectives share: parameters, message sizes, results by size, known peaks, and their judgement.

The checks `collective` and `nccl_tests` use it. Everything here is pure; each check measures in its own way.
"""
