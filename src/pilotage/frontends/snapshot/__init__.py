"""A cluster at one moment, from a dump or an API server, loaded into an engine that writes nothing."""
