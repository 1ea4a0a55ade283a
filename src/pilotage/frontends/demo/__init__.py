"""`pilotage demo`: a realistic mixed workload, scheduled over HTTP, and what came of it."""
