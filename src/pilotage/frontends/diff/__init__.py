"""What two scheduler configurations decide differently on one cluster: the same pods, decided twice.

Laws: nothing is written anywhere; both sides see the same objects in the same order, so that rows mean the
same nodes; ties are broken by the same seed, so that equal decisions stay equal.
"""
