"""The simulated kubelet: one service for all nodes."""
