"""The check `collective`, and the code that `nccl_tests` shares with it."""
