"""CheapestNode: of the nodes that fit, prefers those with the lowest price label."""

from pilotage.framework.plugin import Plugin

PRICE = "example.com/hourly-price"  # a node label: between 0 and 1; absent counts as 1


class CheapestNode(Plugin):
    def score(self, cycle, pod, node):
        price = float(node.labels.get(PRICE, "1"))
        return round(100 * (1 - min(max(price, 0), 1)))
