"""Model rows of the vendors, each with its sources and date."""
