"""The plugin contract: extension points, statuses, cycle state, cluster events, call values, registry.

Laws: pure (no asyncio, socket, time, random, os, logging); plugins and engine both depend on this
package and never on each other.
"""
