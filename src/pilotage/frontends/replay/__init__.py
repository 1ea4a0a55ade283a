"""`pilotage replay`: decides recorded scenarios again and compares with what kube-scheduler decided."""
