"""The check `storage`: how fast a directory is, by fio."""
