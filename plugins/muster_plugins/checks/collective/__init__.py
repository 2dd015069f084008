"""The check `collective`, and what `nccl_tests` shares with it."""
