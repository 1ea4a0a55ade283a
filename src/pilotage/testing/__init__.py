"""The test harness as a product: a whole cluster in one process, under virtual time, with faults on demand.

Start with `pilotage.testing.harness.Harness`; `pilotage.testing.pytest_plugin` has fixtures for it;
`pilotage.testing.proxy.FaultProxy` stands before a real API server.
"""
