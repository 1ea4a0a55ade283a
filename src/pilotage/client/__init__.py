"""Edge: HTTP to an API server, credentials, list/watch streams, rate limits."""
