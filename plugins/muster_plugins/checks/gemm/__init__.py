"""The check `gemm`: matrix products."""
