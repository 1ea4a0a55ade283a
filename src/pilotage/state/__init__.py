"""What we believe about the cluster, pure and columnar: nodes, pods, assumed pods, nominations, counts.

Laws: one owner, no lock, no copy; each change returns what changed; rebuilt from the objects alone.
"""
