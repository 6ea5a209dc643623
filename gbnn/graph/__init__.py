"""The network as a graph: the room for paths, degrees, spectra and reports; nothing is in it yet."""
