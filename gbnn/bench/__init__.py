"""The room for workloads, peers and the table of a command `gbnn bench`; nothing is in it yet."""
