"""Kubernetes objects as typed values: only the fields that decisions read.

Laws: nothing here knows the scheduler, a clock or a socket. Structs are read-only views, decoded
item by item and never encoded back; writes are patches and small bodies.
"""
