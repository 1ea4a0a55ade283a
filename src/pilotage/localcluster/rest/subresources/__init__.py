"""What lies under an object and is no plain read or write of it: bindings, evictions, scale, finalize."""
