"""The engine: queue, cycle, binding machine, failure handling. Pure: facts in, effects out."""
