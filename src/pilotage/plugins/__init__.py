"""Default plugins, one file each; none imports another."""
