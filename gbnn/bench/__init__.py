"""Workloads, peers and the table that `gbnn bench` prints; filled by later issues."""
