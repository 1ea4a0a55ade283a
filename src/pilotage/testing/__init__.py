"""The harness as a product: in-process cluster, virtual clock, fault injection."""
