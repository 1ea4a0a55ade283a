"""Measurements that anybody can repeat: the scheduler from outside, in real or in virtual time."""
