"""Parts of DefaultPreemption: eligibility, search for candidates, victims on a node, choice among nodes.

Everything here is about one decision: it reads the cluster, tries on overlays and names the victims.
Nothing is removed here; the engine does that.
"""
