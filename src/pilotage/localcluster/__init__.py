"""Edge: embedded API server, simulated kubelets, controllers."""
