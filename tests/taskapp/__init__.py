"""An app of a site that uses Django's Tasks."""
