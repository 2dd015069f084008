"""NCCL's environment and its log, for the checks `collective` and `nccl_tests`."""
