"""The built-in plugins. Each is one file, registered by an entry point like anybody else's, and imports only core."""
