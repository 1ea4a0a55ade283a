"""Small controllers: what kube-controller-manager does, as far as a scheduler's cluster needs it."""
