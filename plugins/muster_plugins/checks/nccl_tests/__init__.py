"""The check `nccl_tests`: NVIDIA's own programs."""
