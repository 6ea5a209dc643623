"""Bridges to other libraries, each an optional extra imported on use; filled by later issues."""
