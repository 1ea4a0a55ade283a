"""Two schedulers on one cluster: the same scenarios, one after the other, and where they differ."""
