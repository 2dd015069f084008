"""What is told to NCCL and what it tells, for the checks `collective` and `nccl_tests`."""
