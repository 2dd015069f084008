"""The check `storage`: measures the speed of a directory with fio."""
