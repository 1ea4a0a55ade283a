"""KEP-5229 call queue (pure): offer, take, finish, sync, cancel; one file per call type."""
