"""The room for bridges to other libraries, optional extras imported on use; nothing is in it yet."""
