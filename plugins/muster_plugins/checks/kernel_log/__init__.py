"""The check `kernel_log`: what the kernel says."""
