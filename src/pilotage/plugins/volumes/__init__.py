"""Parts of the volume plugins: a pod's claims, where they can be had, what drivers attach, how it ends."""
