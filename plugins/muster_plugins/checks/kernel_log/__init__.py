"""The check `kernel_log`: errors in the kernel's log."""
