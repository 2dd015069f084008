"""Code that several built-in plugins share. It must not import any plugin."""
