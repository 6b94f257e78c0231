"""The pages, one script each; never in a folder called pages, which breaks deep links."""
