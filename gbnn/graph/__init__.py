"""The network as a graph: paths, degrees, spectra and reports; filled by later issues."""
