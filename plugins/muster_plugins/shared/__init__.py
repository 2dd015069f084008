"""What several built-in plugins share. Must not know any plugin."""
