"""Bridges to other libraries, optional extras imported on use: `gbnn.interop.sklearn`."""
