"""What we do about nodes: who is taken out of service, when, and how each comes back. Pure; nothing here does I/O."""
