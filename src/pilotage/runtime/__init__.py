"""Edge: the asyncio driver, dispatcher workers, informers, clock, metrics, configuration."""
