"""Tells others over HTTP that a node went out of service, or came back."""
