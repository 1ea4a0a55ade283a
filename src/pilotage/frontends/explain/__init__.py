"""Why a pod is where it is or is nowhere, asked of the real filters and scores, node by node and in groups.

Laws: nothing is written anywhere; every verdict and every what-if comes from the profile's own plugins;
texts of rejections are shown, never read. The numbers behind a plugin's verdict are in `plugins/`, one file
each.
"""
