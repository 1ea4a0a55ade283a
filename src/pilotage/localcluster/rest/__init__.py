"""Kubernetes API semantics over the store. Pure: a request comes in, a response goes out."""
